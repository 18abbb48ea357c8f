package replay

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// shareFor returns a share for its flag's text.
func shareFor(t *testing.T, text string) Fraction {
	t.Helper()
	var s Fraction
	if err := s.Set(text); err != nil {
		t.Fatal(err)
	}
	return s
}

// suggestOne suggests a capacity for the only limit of a system.
func suggestOne(t *testing.T, l weir.Limit, share, latency string, calls ...trace.Call) *Suggestions {
	t.Helper()
	lasts, err := ParseLatency(latency)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorkload(traceOf(calls...), &WorkloadOptions{Latency: lasts})
	d := &weir.Definitions{System: []weir.Limit{l}}
	s, err := Suggest(t.Context(), d, w, shareFor(t, share), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// firstDenied replays against definitions and counts the calls that were not admitted on arrival.
func firstDenied(t *testing.T, d *weir.Definitions, w *Workload, o *SuggestOptions) int64 {
	t.Helper()
	if o == nil {
		o = &SuggestOptions{}
	}
	c := &refusals{}
	_, err := Run(t.Context(), d, w, &Options{
		Estimate: o.Estimate, Retry: o.Retry, Watchers: []Watcher{c},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.n
}

type refusals struct{ n int64 }

func (r *refusals) Reserved(a *Attempt, v *Decision) error {
	if a.Number == 1 && (v.Denied != nil || v.Err != nil) {
		r.n++
	}
	return nil
}

func (*refusals) Completed(*Attempt) error { return nil }

// each returns n calls, one every everyMS milliseconds.
func each(n int, fromMS, everyMS, input int64) []trace.Call {
	calls := make([]trace.Call, n)
	for i := range calls {
		calls[i] = callOf(i+2, fromMS+int64(i)*everyMS, input, 0)
	}
	return calls
}

func together(parts ...[]trace.Call) []trace.Call {
	var all []trace.Call
	for _, p := range parts {
		all = append(all, p...)
	}
	for i := range all {
		all[i].Line = int32(i + 2)
	}
	return all
}

// levels returns definitions with limits on every level, of which not all judge or deny calls on
// llm.
func levels() *weir.Definitions {
	tokens := func(capacity int64) weir.Limit {
		return weir.Limit{
			Name: "tpm", Capacity: capacity, RefillAmount: 2 * capacity, RefillPeriod: time.Hour,
		}
	}
	return &weir.Definitions{
		OnUnavailable: weir.Allow,
		System:        []weir.Limit{{Name: "rpm", Capacity: 7}},
		Resources:     map[string][]weir.Limit{"llm": {tokens(100)}, "other": {tokens(5)}},
		Entities: map[string]weir.EntityDefinition{
			"acme": {Limits: map[string][]weir.Limit{weir.DefaultResource: {
				{Name: "parallel", Kind: weir.Concurrency, Capacity: 3, Timeout: time.Minute},
				{
					Name: "usd_micros", Kind: weir.Budget, Capacity: 5, Every: "week", Zone: "Asia/Tokyo",
					Shadow: true,
				},
			}}},
			"tenant-1": {Parent: "acme", Cascade: true},
			"tenant-2": {Limits: map[string][]weir.Limit{"llm": {{Name: "rpm", Capacity: 2}}}},
		},
	}
}

// TestSuggestKeepsFixedLimits checks that limits that are not sized stay as they are, and that the result
// names them.
func TestSuggestKeepsFixedLimits(t *testing.T) {
	t.Parallel()
	d := levels()
	w := NewWorkload(traceOf(each(200, 0, 10, 30)...), &WorkloadOptions{Entities: 3, Seed: 5})
	var told []SuggestProgress
	s, err := Suggest(t.Context(), d, w, shareFor(t, "2%"), &SuggestOptions{
		Progress: func(p SuggestProgress) { told = append(told, p) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, l := range s.Limits {
		fields = append(fields, l.Field)
	}
	want := "resources.llm.limits.tpm entities.acme.resources._default_.limits.parallel " +
		"entities.tenant-2.resources.llm.limits.rpm"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, want := range []LimitLeftOut{
		{"system.limits.rpm", "it judges no call of the trace"},
		{"resources.other.limits.tpm", "it judges no call of the trace"},
		{"entities.acme.resources._default_.limits.usd_micros", "a shadow limit denies nothing"},
	} {
		if s.LeftOut[i] != want {
			t.Errorf("got %v, want %v", s.LeftOut[i], want)
		}
	}
	got := s.Limits[0]
	if got.SuggestedRefillAmount != 2*got.SuggestedCapacity || got.RefillAmount != 200 {
		t.Errorf("got a bucket of %d and %d", got.SuggestedCapacity, got.SuggestedRefillAmount)
	}
	changed, _ := s.Definitions.Normalize()
	original, _ := d.Normalize()
	for field, l := range changed.All {
		for before, o := range original.All {
			if field == before {
				o.Capacity, o.RefillAmount = l.Capacity, l.RefillAmount
				if !l.Same(*o) {
					t.Errorf("%s: got %+v, want %+v", field, l, o)
				}
			}
		}
	}
	if d.Resources["llm"][0].Capacity != 100 || len(changed.Entities) != 3 ||
		changed.OnUnavailable != weir.Allow {
		t.Error("the definitions were changed")
	}
	if last := told[len(told)-1]; last.Sized != 3 || last.Limits != 3 || last.Replays < s.Replays {
		t.Errorf("got %+v as the last progress of %d replays", last, s.Replays)
	}
}

// TestSuggestRefuses checks the error if no capacity is enough, that nothing to size is no error,
// and that an interrupt ends the search.
func TestSuggestRefuses(t *testing.T) {
	t.Parallel()
	w := NewWorkload(traceOf(each(3, 0, 1, 1)...), &WorkloadOptions{
		Costs: Costs{"rpm": {call: 1 << 62}},
	})
	d := &weir.Definitions{System: []weir.Limit{{Name: "rpm", Capacity: 7}}}
	_, err := Suggest(t.Context(), d, w, shareFor(t, "1%"), nil)
	_, unfit := errors.AsType[UnfitError](err)
	if !unfit || !strings.Contains(err.Error(), "system.limits.rpm") {
		t.Errorf("got %v, want that no capacity is enough", err)
	}
	s, err := Suggest(t.Context(), d, w, shareFor(t, "99%"), nil)
	if err == nil {
		t.Errorf("got %+v though all calls are too large", s)
	}
	w = NewWorkload(traceOf(each(5000, 0, 1, 1)...), nil)
	d.System[0].Shadow = true
	s, err = Suggest(t.Context(), d, w, shareFor(t, "1%"), nil)
	if err != nil || len(s.Limits) != 0 || s.Denied != 0 || len(s.LeftOut) != 1 {
		t.Errorf("got %+v and %v, want nothing to size", s, err)
	}
	d.System[0].Shadow = false
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Suggest(ctx, d, w, shareFor(t, "1%"), &SuggestOptions{
		Progress: func(p SuggestProgress) {
			if p.Replays == 2 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was interrupted", err)
	}
	d.System[0].Capacity = -1
	if _, err := Suggest(t.Context(), d, w, shareFor(t, "1%"), nil); !errors.Is(err, weir.Invalid) {
		t.Errorf("got %v, want that the limit is wrong", err)
	}
}

// TestSuggestDottedNames checks that two places in a file are told apart if their names would form
// the same path.
func TestSuggestDottedNames(t *testing.T) {
	t.Parallel()
	limit := func(capacity int64) []weir.Limit { return []weir.Limit{{Name: "rpm", Capacity: capacity}} }
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{
		"a":             {Limits: map[string][]weir.Limit{"b.resources.c": limit(2)}},
		"a.resources.b": {Limits: map[string][]weir.Limit{"c": limit(900)}},
	}}
	calls := each(30, 0, 0, 1)
	for i := range calls {
		calls[i].Caller = int32(min(i%3, 1)) // ten, and twenty
	}
	recorded := traceOf(calls...)
	recorded.EntityColumn = "who"
	recorded.Callers = []trace.EntityModel{
		{Entity: "a", Resource: "b.resources.c"}, {Entity: "a.resources.b", Resource: "c"},
	}
	s, err := Suggest(t.Context(), d, NewWorkload(recorded, nil), shareFor(t, "0%"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		place    string
		capacity int64
	}{{`entities.a.resources."b.resources.c"`, 10}, {`entities."a.resources.b".resources.c`, 20}} {
		if got := s.Limits[i]; got.Place != want.place || got.SuggestedCapacity != want.capacity {
			t.Errorf("got %d at %s, want %d at %s", got.SuggestedCapacity, got.Place, want.capacity, want.place)
		}
	}
}

// TestSizedRefill checks that the ratio of refill to capacity is kept, rounded up, for all numbers.
func TestSizedRefill(t *testing.T) {
	t.Parallel()
	for _, tt := range [][4]int64{ // capacity, refill, new capacity, want
		{100, 50, 10, 5}, {100, 1, 10, 1}, {3, 1, 10, 4}, {240_000, 120_000, 240_000, 120_000},
		{1, 9_000_000_000_000_000, 2000, 1<<63 - 1}, {7, 13, 7, 13},
	} {
		l := weir.Limit{Name: "x", Kind: weir.Bucket, Capacity: tt[0], RefillAmount: tt[1]}
		d := &sizedLimit{limit: l}
		if got := d.sized(tt[2]); got.Capacity != tt[2] || got.RefillAmount != tt[3] {
			t.Errorf("%v: got %d and %d", tt, got.Capacity, got.RefillAmount)
		}
	}
}
