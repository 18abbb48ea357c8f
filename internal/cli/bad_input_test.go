package cli

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
	"github.com/weir-limiter/weir/memory"
)

const badInputLimits = `version: 1
system:
  limits:
    rpm: {capacity: 10}
    recent: {kind: window, capacity: 10, window: 60}
    parallel: {kind: concurrency, capacity: 3, timeout: 60}
    daily: {kind: budget, capacity: 10, every: day}
`

// badStart is the time of the test's clock, which does not move.
var badStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// badInputWorld is a limiter with a lease on every kind of limit, so that there is state to damage.
func badInputWorld(t *testing.T) (*limiter.Limiter, *weir.Lease) {
	t.Helper()
	m, err := manifest.Parse("limits.yaml", []byte(badInputLimits))
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.Open(&memory.Options{Definitions: m.Definitions})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, &limiter.Options{Now: func() time.Time { return badStart }})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.Reserve(t.Context(), &weir.Request{LeaseID: weir.NewLeaseID(badStart),
		Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": 3, "recent": 3, "daily": 3}})
	if err != nil {
		t.Fatal(err)
	}
	return l, lease
}

// badCall is one mistake of a caller.
type badCall struct {
	sent  string
	call  func(context.Context, *limiter.Limiter, *weir.Lease) error
	code  weir.Code
	field string
}

func reserving(r weir.Request) func(context.Context, *limiter.Limiter, *weir.Lease) error {
	return func(ctx context.Context, l *limiter.Limiter, _ *weir.Lease) error {
		_, err := l.Reserve(ctx, &r)
		return err
	}
}

func asking(entity, resource string, costs weir.Costs) weir.Request {
	return weir.Request{Entity: entity, Resource: resource, Costs: costs}
}

func bringing(id weir.LeaseID) func(context.Context, *limiter.Limiter, *weir.Lease) error {
	r := asking("acme", "gpt-4o", weir.Costs{"rpm": 1})
	r.LeaseID = id
	return reserving(r)
}

func badRequests() []badCall {
	one := weir.Costs{"rpm": 1}
	twice := weir.Request{Charges: []weir.Charge{
		{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": math.MaxInt64}},
		{Entity: "acme", Resource: "gpt-4o", Costs: weir.Costs{"rpm": math.MaxInt64}}}}
	return []badCall{
		{"a negative cost", reserving(asking("acme", "gpt-4o", weir.Costs{"rpm": -1})), weir.Invalid, "costs.rpm"},
		{"costs whose sum is over int64", reserving(twice), weir.NeverSatisfiable, "costs.rpm"},
		{"more than a limit can ever hold", reserving(asking("acme", "gpt-4o", weir.Costs{"daily": 11})),
			weir.NeverSatisfiable, "costs.daily"},
		{"a cost of an unknown limit", reserving(asking("acme", "gpt-4o", weir.Costs{"rpm": 1, "nope": 1})),
			weir.UnknownLimit, "costs.nope"},
		{"a limit's name with a #", reserving(asking("acme", "gpt-4o", weir.Costs{"r#m": 1})), weir.Invalid,
			"costs.r#m"},
		{"an empty entity", reserving(asking("", "gpt-4o", one)), weir.Invalid, "entity"},
		{"an entity of 257 bytes", reserving(asking(strings.Repeat("a", 257), "gpt-4o", one)),
			weir.Invalid, "entity"},
		{"an entity with a #", reserving(asking("ac#me", "gpt-4o", one)), weir.Invalid, "entity"},
		{"an entity with a newline", reserving(asking("acme\n", "gpt-4o", one)), weir.Invalid, "entity"},
		{"an entity of invalid UTF-8", reserving(asking("ac\xffme", "gpt-4o", one)), weir.Invalid, "entity"},
		{"an empty resource", reserving(asking("acme", "", one)), weir.Invalid, "resource"},
		{"a resource of 129 bytes", reserving(asking("acme", strings.Repeat("a", 129), one)),
			weir.Invalid, "resource"},
		{"a resource with a #", reserving(asking("acme", "gpt#4o", one)), weir.Invalid, "resource"},
		{"17 charges", reserving(weir.Request{Charges: make([]weir.Charge, 17)}), weir.Invalid, "charges"},
	}
}

func badLeases() []badCall {
	unknown := weir.NewLeaseID(badStart.Add(time.Second))
	return []badCall{
		{"a lease ID that is not a ULID", func(context.Context, *limiter.Limiter, *weir.Lease) error {
			_, err := weir.ParseLeaseID("01ARZ3NDEKTSV4RRFFQ69G5FAU")
			return err
		}, weir.Invalid, "lease_id"},
		{"an unknown lease completed", func(ctx context.Context, l *limiter.Limiter, _ *weir.Lease) error {
			_, err := l.Complete(ctx, unknown, nil)
			return err
		}, weir.UnknownLease, "lease_id"},
		{"a lease ID that is too old", bringing(weir.NewLeaseID(badStart.Add(-11 * time.Minute))),
			weir.Invalid, "lease_id"},
		{"a lease ID from the future", bringing(weir.NewLeaseID(badStart.Add(61 * time.Second))),
			weir.Invalid, "lease_id"},
		{"a lease ID reused with other content",
			func(ctx context.Context, l *limiter.Limiter, lease *weir.Lease) error {
				return bringing(lease.ID)(ctx, l, lease)
			}, weir.Conflict, "lease_id"},
		{"an ended lease adjusted", func(ctx context.Context, l *limiter.Limiter, _ *weir.Lease) error {
			lease, err := l.Reserve(ctx, &weir.Request{Entity: "acme", Resource: "gpt-4o"})
			if err != nil {
				return err
			}
			if _, err := lease.Cancel(ctx); err != nil {
				return err
			}
			_, err = lease.Adjust(ctx, weir.Costs{"rpm": 9})
			return err
		}, weir.Ended, "lease_id"},
		{"a negative total", adjusting(weir.Costs{"rpm": -1}), weir.Invalid, "totals.rpm"},
		{"a total of what was not reserved", adjusting(weir.Costs{"rpm": 1, "tpm": 1}), weir.Invalid, "totals.tpm"},
		{"more slots than are held", adjusting(weir.Costs{"rpm": 1, "parallel": 2}), weir.Invalid,
			"totals.parallel"},
		{"a total that a bucket cannot count", adjusting(weir.Costs{"recent": 9, "rpm": math.MaxInt64}),
			weir.Invalid, "totals.rpm"},
	}
}

func adjusting(totals weir.Costs) func(context.Context, *limiter.Limiter, *weir.Lease) error {
	return func(ctx context.Context, _ *limiter.Limiter, lease *weir.Lease) error {
		_, err := lease.Adjust(ctx, totals)
		return err
	}
}

// A call that is refused names the field, the value and the reason, and changes nothing.
func TestBadInputCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range append(badRequests(), badLeases()...) {
		l, lease := badInputWorld(t)
		before, err := l.Status(t.Context(), "acme", "gpt-4o")
		if err != nil {
			t.Fatal(err)
		}
		got := tt.call(t.Context(), l, lease)
		after, err := l.Status(t.Context(), "acme", "gpt-4o")
		if err != nil {
			t.Fatal(err)
		}
		e, ok := errors.AsType[*weir.Error](got)
		if !ok || e.Code != tt.code || e.Field != tt.field || e.Reason == "" {
			t.Errorf("%s: got %v, want %q of %s with a reason", tt.sent, got, string(tt.code), tt.field)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s: state: got %+v, want %+v", tt.sent, after, before)
		}
		if _, err := lease.Complete(t.Context()); err != nil {
			t.Errorf("%s: the live lease: %v", tt.sent, err)
		}
		t.Logf("%-37s → %s; state equal: %v", tt.sent, got, reflect.DeepEqual(before, after))
	}
}

// A limits file that is refused leaves the limits in force.
func TestBadInputLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ sent, file, want string }{
		{"a cycle", "version: 1\nentities:\n  a: {parent: b}\n  b: {parent: a}\n", "cycle"},
		{"an unknown field", "version: 1\nsystem: {limits: {rpm: {capacity: 1, burts: 2}}}\n", "burts"},
		{"a repeated field", "version: 1\nsystem: {limits: {rpm: {capacity: 1, capacity: 2}}}\n", "capacity"},
		{"a zero period", "version: 1\nsystem: {limits: {rpm: {capacity: 1, refill_period: 0}}}\n",
			"refill_period"},
		{"a window that is not whole seconds",
			"version: 1\nsystem: {limits: {w: {kind: window, capacity: 1, window: 1.5}}}\n", "window"},
		{"a zone that does not exist",
			"version: 1\nsystem: {limits: {b: {kind: budget, capacity: 1, every: day, zone: Mars/Base}}}\n",
			"zone"},
		{"a capacity over int64", "version: 1\nsystem: {limits: {rpm: {capacity: 9223372036854775808}}}\n",
			"capacity"},
		{"a negative capacity", "version: 1\nsystem: {limits: {rpm: {capacity: -1}}}\n", "capacity"},
	} {
		name := filepath.Join(t.TempDir(), "limits.yaml")
		if err := os.WriteFile(name, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		exit, message := runBad(t, "limits", "check", name)
		message = strings.ReplaceAll(message, name, "limits.yaml")
		if exit != 1 || !strings.Contains(message, tt.want) || !strings.Contains(message, "limits.yaml:") {
			t.Errorf("%s: got exit %d and %q, want 1 and the place of %s", tt.sent, exit, message, tt.want)
		}
		t.Logf("%-37s → %s", tt.sent, strings.TrimSpace(message))
	}
}

// A trace that is refused is not replayed at all.
func TestBadInputTrace(t *testing.T) {
	t.Parallel()
	const head = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
	for _, tt := range []struct{ sent, line, want string }{
		{"a missing column", "2023-11-16 18:17:04,1\n", ":3"},
		{"a number that is none", "2023-11-16 18:17:04,many,1\n", "many"},
		{"a negative number", "2023-11-16 18:17:04,-1,1\n", "-1"},
		{"a number over int64", "2023-11-16 18:17:04,9223372036854775808,1\n", "9223372036854775808"},
		{"a time that is none", "yesterday,1,1\n", "yesterday"},
		{"a time before the last", "2022-11-16 18:17:04,1,1\n", "2022"},
	} {
		dir := t.TempDir()
		trace, limits := filepath.Join(dir, "trace.csv"), filepath.Join(dir, "limits.yaml")
		log := filepath.Join(dir, "decisions")
		for name, text := range map[string]string{trace: head + tt.line, limits: badInputLimits} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		exit, message := runBad(t, "replay", trace, "--limits", limits, "--decisions", log,
			"--cost", "recent=1", "--cost", "daily=1")
		message = strings.ReplaceAll(message, trace, "trace.csv")
		if exit != 1 || !strings.Contains(message, tt.want) || !strings.Contains(message, "trace.csv:3") {
			t.Errorf("%s: got exit %d and %q, want 1 and line 3 with %s", tt.sent, exit, message, tt.want)
		}
		if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a decision log was left: %v", tt.sent, err)
		}
		t.Logf("%-37s → %s", tt.sent, strings.TrimSpace(message))
	}
}

// runBad runs a command and returns its exit code and the mistakes that it printed.
func runBad(t *testing.T, args ...string) (exit int, message string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = Run(t.Context(), args, console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		func(string) string { return "" })
	if strings.Contains(out.String(), "admitted") {
		t.Errorf("%v: printed %q, as if it had been done", args, out.String())
	}
	return exit, errs.String()
}
