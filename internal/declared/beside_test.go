package declared_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// TestForeignKeepsEntity drops an entity from the file on which the Python library has set a
// limit that a file cannot say, at a place that no file manages.
func TestForeignKeepsEntity(t *testing.T) {
	t.Parallel()
	w := unmadeWorld(t)
	w.python(step{"make_table", nil})
	w.follow()
	a := w.open("ann")
	const all = "version: 1\nresources: {a: {limits: {rpm: {capacity: 1}}}}\n" +
		"entities: {old: {}, b: {}, c: {}, d: {}, e: {}, f: {}}\n"
	a.apply(all)
	soft := rpm(5)
	soft["soft"] = true
	w.python(setLimits("old", "x", soft))
	w.follow()
	const less = "version: 1\nresources: {a: {limits: {rpm: {capacity: 1}}}}\n" +
		"entities: {b: {}, c: {}, d: {}, e: {}, f: {}}\n"
	p, err := a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: less})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Kept) != 1 || !strings.Contains(p.Kept[0].Reason, "on x") {
		t.Errorf("kept: %+v", p.Kept)
	}
	e, err := a.ExportLimits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Foreign) != 1 {
		t.Errorf("the limit of the Python library that no file manages is gone: %+v", e.Foreign)
	}
}

// between is a network that calls do before one request of a sort, counted from 1.
type between struct {
	operation string
	at        int64
	do        func()
	seen      atomic.Int64
}

func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+b.operation) && b.seen.Add(1) == b.at {
		b.do()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestDeletionSparesNewLimits lets an administrator set limits of an entity that an apply deletes,
// before each request that the apply makes after its plan.
func TestDeletionSparesNewLimits(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"TransactWriteItems", "Query", "GetItem", "UpdateItem"} {
		for n, more := int64(1), true; more; n++ {
			more = limitsMeanwhile(t, operation, n)
		}
	}
}

// limitsMeanwhile sets limits before the nth request of a sort that an apply makes. It reports
// whether the apply made so many.
func limitsMeanwhile(t *testing.T, operation string, n int64) bool {
	t.Helper()
	w := newWorld(t)
	const without = "version: 1\nresources: {a: {limits: {rpm: {capacity: 1}}}}\n"
	w.open("ann").apply(without + "entities: {old: {resources: {a: {limits: {rpm: {capacity: 1}}}}}}\n")
	olga := w.open("olga")
	at := weir.Subject{Entity: "old", Resource: "x"}
	b := &between{operation: operation, at: n, do: func() {
		if err := olga.SetLimits(t.Context(), at, []weir.Limit{{Name: "rpm", Capacity: 9}}); err != nil {
			t.Error(err)
		}
	}}
	p, err := w.open("bob", through(b)).ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: without, Yes: true})
	if err != nil {
		t.Fatal(err)
	}
	if b.seen.Load() < n {
		return false
	}
	limits, err := olga.Limiter.Limits(t.Context(), at)
	if err != nil || len(limits) != 1 {
		t.Errorf("before %s %d: the limits that olga has set, which no file manages, are gone: %v, %v, %d failed",
			operation, n, limits, err, p.Failed)
	}
	return true
}

// TestRetentionRace sets a setting of the retention that the file does not have, after the plan.
func TestRetentionRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("ann")
	one, two := int64(10), int64(20)
	if err := a.SetRetention(t.Context(), weir.Retention{AuditDays: &one}); err != nil {
		t.Fatal(err)
	}
	olga := w.open("olga")
	b := &between{operation: "TransactWriteItems", at: 1, do: func() {
		if err := olga.SetRetention(t.Context(), weir.Retention{AuditDays: &two}); err != nil {
			t.Error(err)
		}
	}}
	w.open("bob", through(b)).apply("version: 1\nsystem: {retention: {usage_days: 5}}\n")
	r, err := olga.Retention(t.Context())
	if err != nil || *r.AuditDays != 20 {
		t.Errorf("audit_days is %d, want olga's 20, which no file manages (%v)", *r.AuditDays, err)
	}
}

// TestMoveBetweenLevels moves a limit from the system to an entity. In the middle of the apply, no
// request is without limits.
func TestMoveBetweenLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("ann")
	const from = "version: 1\nsystem: {limits: {rpm: {capacity: 10}}}\nentities: {e: {}}\n"
	const to = "version: 1\nentities: {e: {resources: {_default_: {limits: {rpm: {capacity: 10}}}}}}\n"
	a.apply(from)
	for n := range int64(4) {
		a.apply(from)
		b := &between{operation: "TransactWriteItems", at: n + 1, do: func() {
			_, err := w.open("user").Reserve(t.Context(), &weir.Request{
				Entity: "e", Resource: "r", Costs: weir.Costs{"rpm": 1},
			})
			if err != nil && !denied(err) {
				t.Errorf("before request %d: %v", n+1, err)
			}
		}}
		w.open("bob", through(b)).apply(to)
	}
}

// TestFollowFailed lets the table refuse the writes that bring live buckets to their limits. The
// next apply does it.
func TestFollowFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow()
	a := w.open("ann")
	const text = "version: 1\nresources: {a: {limits: {rpm: {capacity: 5}}}}\n"
	a.apply(text)
	a.use("e", "a")
	w.follow()
	more := strings.Replace(text, "5", "50", 1)
	broken := failing{"UpdateItem"}
	p := w.open("bob", through(broken)).apply(more)
	if p.Behind == nil || p.Behind.Count != 1 || !slices.Equal(p.Behind.Names, []string{"e"}) ||
		!strings.Contains(p.Behind.Reason, "e on a: ") {
		t.Fatalf("behind: got %+v, want e, whose bucket could not be written", p.Behind)
	}
	w.follow()
	p = w.open("carl").apply(more)
	if !p.Record || p.Behind != nil {
		t.Errorf("the next apply: %+v", p)
	}
	if all := strings.Join(w.scanned("default"), "\n"); !strings.Contains(all, `"b_rpm_cp":50000`) {
		t.Errorf("after another apply the bucket item still has the old limit:\n%s", all)
	}
}

// failing is a network that loses one sort of request.
type failing struct{ operation string }

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+f.operation) {
		return nil, errKilled
	}
	return http.DefaultTransport.RoundTrip(r)
}

func denied(err error) bool {
	_, ok := errors.AsType[*weir.DeniedError](err)
	return ok
}

// TestDiffShowsForeign compares a file with a table in which the Python library has a limit that a
// file cannot say, beside the limit of the file.
func TestDiffShowsForeign(t *testing.T) {
	t.Parallel()
	w := unmadeWorld(t)
	w.python(
		step{"make_table", nil},
		setResource("window", rpm(2), map[string]any{
			"name": "day", "capacity": 7, "refill_amount": 0, "refill_period_seconds": 60,
			"reset_after": 3600,
		}),
		step{"disable_resource", map[string]any{"resource": "off"}},
	)
	a := w.open("ann")
	p := a.plan("version: 1\nresources: {window: {limits: {rpm: {capacity: 2}}}}\n")
	if len(p.Foreign) != 2 {
		t.Error("the comparison says equal, although the table has a limit and a setting more")
	}
}

// TestTooManyNames plans a file with more names than the record can have. The plan says that an
// apply is refused.
func TestTooManyNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("ann")
	var text strings.Builder
	text.WriteString("version: 1\nentities:\n")
	for i := range 800 {
		fmt.Fprintf(&text, "  e%0249d: {}\n", i)
	}
	p := a.plan(text.String())
	if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Reason, "several applies") {
		t.Errorf("refusals: %+v", p.Refusals)
	}
	_, err := a.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: text.String(), Yes: true})
	if !errors.Is(err, weir.Conflict) || !strings.Contains(err.Error(), "several applies") {
		t.Errorf("an apply: %v", err)
	}
	if r := record(t, a.Limiter); !r.Managed.Empty() || r.Apply != nil {
		t.Errorf("the record was written: %+v", r)
	}
}
