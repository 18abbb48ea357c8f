package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// oneSlot is a limiter with one slot, which times out after a minute.
func oneSlot(t *testing.T) *limiter.Limiter { return oneSlotWith(t, nil) }

func oneSlotWith(t *testing.T, o *limiter.Options) *limiter.Limiter {
	t.Helper()
	slot := weir.Limit{Name: "parallel", Kind: weir.Concurrency, Capacity: 1, Timeout: time.Minute}
	d := &weir.Definitions{System: []weir.Limit{slot}}
	store, err := memory.Open(&memory.Options{Definitions: d})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestReserveWait checks that --wait tries again until the request fits or the time is over.
func TestReserveWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		wait     time.Duration
		admitted bool
		within   time.Duration
	}{
		{"not at all", 0, false, 0},
		{"too short", 30 * time.Second, false, 30 * time.Second},
		{"long enough", 2 * time.Minute, true, 61 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := oneSlot(t)
				r := &weir.Request{Entity: "acme", Resource: "gpt-4o"}
				if _, err := l.Reserve(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				f := &reserveFlags{wait: c.wait}
				lease, err := f.reserve(t.Context(), &connect.Connection{Service: l}, r)
				_, denied := errors.AsType[*weir.DeniedError](err)
				if (lease != nil) != c.admitted || denied == c.admitted {
					t.Errorf("got lease %v and %v, want admitted %v", lease, err, c.admitted)
				}
				if denied && console.ExitCode(console.FailedError(err)) != console.ExitDenied || len(console.MistakeLines(err)) > 1 {
					t.Errorf("got exit code %d and %q", console.ExitCode(console.FailedError(err)), console.MistakeLines(err))
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("took %v, want at most %v", took, c.within)
				}
			})
		})
	}
}

// slowService delays each reservation, unless its caller leaves.
type slowService struct {
	weir.Service

	takes time.Duration
}

func (s slowService) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	select {
	case <-time.After(s.takes):
		return s.Service.Reserve(ctx, r)
	case <-ctx.Done():
		return nil, &weir.Error{
			Code: weir.Unavailable, Field: "lease_id", Value: "01JD5W3T7M2Q8R4XKB6NCV9ZHE", Err: ctx.Err(),
		}
	}
}

// TestWaitFinishes checks that a reservation in progress when the time to wait is over runs to its
// end, because its lease would otherwise be unknown to the user. An interrupt cuts it short, and
// the error names the lease.
func TestWaitFinishes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &reserveFlags{wait: time.Second}
		r := &weir.Request{Entity: "acme", Resource: "gpt-4o"}
		lease, err := f.reserve(t.Context(), &connect.Connection{Service: slowService{oneSlot(t), time.Hour}}, r)
		if lease == nil || err != nil {
			t.Errorf("got %v and %v, want a lease", lease, err)
		}

		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, interrupt)
		lease, err = f.reserve(ctx, &connect.Connection{Service: slowService{oneSlot(t), time.Hour}}, r)
		got := console.MistakeLines(console.FailedError(connect.ServiceError(err)))
		want := `interrupted: lease_id "01JD5W3T7M2Q8R4XKB6NCV9ZHE": the outcome is unknown`
		if lease != nil || len(got) != 1 || got[0] != want {
			t.Errorf("got %v and %q, want %q", lease, got, want)
		}
	})
}

// TestWaitInterrupted checks that an interrupt between two attempts is not reported as a denial,
// and leaves no lease.
func TestWaitInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := oneSlot(t)
		r := &weir.Request{Entity: "acme", Resource: "gpt-4o"}
		if _, err := l.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, interrupt)
		f := &reserveFlags{wait: time.Hour}
		lease, err := f.reserve(ctx, &connect.Connection{Service: l}, r)
		err = console.FailedError(connect.ServiceError(err))
		lines := console.MistakeLines(err)
		if lease != nil || console.ExitCode(err) != console.ExitFailed || fmt.Sprint(lines) != "[interrupted]" {
			t.Errorf("got %v, exit code %d and %q, want an interruption", lease, console.ExitCode(err), lines)
		}
	})
}

// TestServiceErrors checks that only an invalid request counts as misuse.
func TestServiceErrors(t *testing.T) {
	t.Parallel()
	of := func(c weir.Code) error { return &weir.Error{Code: c} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, console.ExitDone},
		{&weir.DeniedError{}, console.ExitDenied},
		{of(weir.Invalid), console.ExitMisused},
		{errors.Join(of(weir.Invalid), of(weir.Invalid)), console.ExitMisused},
		{of(weir.UnknownLimit), console.ExitFailed},
		{of(weir.NeverSatisfiable), console.ExitFailed},
		{of(weir.UnknownLease), console.ExitFailed},
		{of(weir.Conflict), console.ExitFailed},
		{of(weir.Unavailable), console.ExitFailed},
		{&weir.Error{Code: weir.Unavailable, Err: of(weir.Invalid)}, console.ExitFailed},
		{fmt.Errorf("x: %w", context.Canceled), console.ExitFailed},
	} {
		if got := console.ExitCode(console.FailedError(connect.ServiceError(c.err))); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

// twoADayLimits is a limits file.
const twoADayLimits = `version: 1
system: {limits: {rpm: {kind: window, capacity: 2, window: 86400}}}
`

// TestStoreInUse checks that a snapshot that another process has open is not changed.
func TestStoreInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits, file := filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "state")
	if err := os.WriteFile(limits, []byte(twoADayLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	reserve := []string{"reserve", "acme", "gpt-4o", "rpm=1",
		"--store", "memory:?snapshot=" + file, "--limits", limits}
	if got := runWeir(t, reserve...); got.code != console.ExitDone {
		t.Fatalf("got %+v, want an admission", got)
	}
	other, err := memory.OpenSnapshot(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := runWeir(t, reserve...)
	want := "another store has it open (if a server has the store open, name that server with --server)"
	if got.code != console.ExitFailed || got.out != "" || !strings.Contains(got.err, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := runWeir(t, reserve...); got.code != console.ExitDone {
		t.Errorf("got %+v, want an admission again", got)
	}
	if got := runWeir(t, reserve...); got.code != console.ExitDenied {
		t.Errorf("got %+v, want a denial: two were admitted", got)
	}
}

// TestReservationIsNotSaved checks that a reservation that cannot be saved is an error, and that no
// lease is printed.
func TestReservationIsNotSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits, folder := filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "gone")
	if err := os.WriteFile(limits, []byte(twoADayLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, vanishes := range []bool{false, true} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		a := &console.App{
			Streams: console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, Env: noEnv,
		}
		quiet := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true}
		cmd := connect.Command(a, quiet, connect.Reserves, func(*cobra.Command, []string) (connect.Action, error) {
			return func(ctx context.Context, c *connect.Connection) (*connect.Answer, error) {
				lease, err := c.Service.Reserve(ctx, &weir.Request{Entity: "acme", Resource: "gpt-4o"})
				if err == nil && vanishes {
					err = os.RemoveAll(folder)
				}
				return leaseAnswer(lease), err
			}, nil
		})
		file := filepath.Join(folder, "state")
		cmd.SetArgs([]string{"--store", "memory:?snapshot=" + file, "--limits", limits})
		err := cmd.ExecuteContext(t.Context())
		if got := console.ExitCode(err) == console.ExitFailed && out.Len() == 0; got != vanishes {
			t.Errorf("vanishes %v: got %v and %q", vanishes, err, out.String())
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// longEntityList is an Admin that has many entities, or whose list repeats the same page.
type longEntityList struct {
	httpapi.Admin

	names []string
	stuck bool
	asked int
}

func (b *longEntityList) Entities(
	_ context.Context, q *weir.EntityQuery,
) (*weir.EntityPage, error) {
	b.asked++
	from, _ := slices.BinarySearch(b.names, q.After+"\x00")
	page := &weir.EntityPage{Names: b.names[from:min(from+q.Size, len(b.names))]}
	if from+q.Size < len(b.names) {
		page.Next = page.Names[len(page.Names)-1]
	}
	if b.stuck && b.asked < 100 {
		page.Next = b.names[0]
	}
	return page, nil
}

// TestEntityList checks that the pages are joined up to the number wanted, and that a list without
// an end is an error.
func TestEntityList(t *testing.T) {
	t.Parallel()
	names := make([]string, 2500)
	for i := range names {
		names[i] = fmt.Sprintf("e%04d", i)
	}
	for _, c := range []struct {
		after       string
		most        int
		first, last string
		next        string
		asked       int
	}{
		{"", 0, "e0000", "e2499", "", 3},
		{"", 1000, "e0000", "e0999", "e0999", 1},
		{"", 1001, "e0000", "e1000", "e1000", 2},
		{"", 2500, "e0000", "e2499", "", 3},
		{"", 9999, "e0000", "e2499", "", 3},
		{"e1499", 1000, "e1500", "e2499", "", 1},
		{"e1499", 999, "e1500", "e2498", "e2498", 1},
	} {
		book := &longEntityList{names: names}
		f := &entityFlags{query: weir.EntityQuery{After: c.after}, most: c.most}
		got, err := f.list(t.Context(), &connect.Connection{Admin: book})
		if err != nil || got.Entities[0] != c.first || got.Entities[len(got.Entities)-1] != c.last ||
			got.Next != c.next || book.asked != c.asked {
			t.Errorf("%q, %d: got %v, %v and %d pages", c.after, c.most, got, err, book.asked)
		}
	}
	f := &entityFlags{}
	endless := &longEntityList{names: names, stuck: true}
	if got, err := f.list(t.Context(), &connect.Connection{Admin: endless}); err == nil {
		t.Errorf("got %d names of a list without an end, want an error", len(got.Entities))
	}
}
