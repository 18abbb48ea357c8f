package replay

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/soak"
)

// randomLimit returns a limit of any kind; the one named p counts slots.
func randomLimit(r *rand.Rand, name string) weir.Limit {
	l := weir.Limit{Name: name, Capacity: 1 + r.Int64N(400)}
	switch kind := r.IntN(3); {
	case name == "p":
		l.Kind, l.Timeout = weir.Concurrency, time.Minute
	case kind == 0:
		l.Kind, l.Window = weir.Window, time.Duration(1+r.IntN(60))*time.Second
	case kind == 1:
		l.Kind, l.Every = weir.Budget, "hour"
	default:
		l.RefillAmount = 1 + r.Int64N(400)
		l.RefillPeriod = time.Duration(1+r.IntN(100)) * time.Second
	}
	return l
}

// randomConfiguration returns definitions with limits on all levels, parents, and shadow limits.
func randomConfiguration(r *rand.Rand) *weir.Definitions {
	names := []string{"a", "b", "itpm", "otpm", "p", "rpm"}
	list := func() []weir.Limit {
		var out []weir.Limit
		for _, name := range names {
			if r.IntN(3) == 0 {
				l := randomLimit(r, name)
				l.Shadow = r.IntN(8) == 0
				out = append(out, l)
			}
		}
		return out
	}
	d := &weir.Definitions{
		System:    append(list(), randomLimit(r, "tpm")),
		Resources: map[string][]weir.Limit{"llm": list()},
		Entities: map[string]weir.EntityDefinition{
			"top": {Limits: map[string][]weir.Limit{"llm": list()}},
			"acme": {
				Parent: "top", Cascade: r.IntN(2) == 0,
				Limits: map[string][]weir.Limit{weir.DefaultResource: list()},
			},
		},
	}
	for i := range 3 {
		d.Entities[TenantName(i)] = weir.EntityDefinition{
			Parent: "acme", Cascade: r.IntN(2) == 0, Limits: map[string][]weir.Limit{"llm": list()},
		}
	}
	return d
}

// shadowOthers returns definitions in which all limits but one are shadow limits, and that one has
// another capacity.
func shadowOthers(d *weir.Definitions, field string, capacity, refill int64) *weir.Definitions {
	return mapLists(d, func(place string, limits []weir.Limit) []weir.Limit {
		out := slices.Clone(limits)
		for i := range out {
			if place+".limits."+out[i].Name == field {
				out[i].Capacity, out[i].RefillAmount = capacity, refill
			} else {
				out[i].Shadow = true
			}
		}
		return out
	})
}

// randomQuestion draws the arguments of a suggestion.
type randomQuestion struct {
	*SuggestOptions

	limits   *weir.Definitions
	workload *Workload
	share    Fraction
}

func newRandomQuestion(t *testing.T, r *rand.Rand) *randomQuestion {
	t.Helper()
	q := &randomQuestion{limits: randomConfiguration(r), SuggestOptions: &SuggestOptions{}}
	calls := make([]trace.Call, 20+r.IntN(200))
	at := int64(0)
	for i := range calls {
		at += r.Int64N(2000) * int64(r.IntN(2))
		calls[i] = callOf(i+2, at, r.Int64N(50), r.Int64N(50))
	}
	q.workload = NewWorkload(traceOf(calls...), &WorkloadOptions{
		Entities: 3, Seed: r.Uint64(), Latency: Latency{time.Second, 40 * time.Millisecond},
		Costs: Costs{"a": {call: 1}, "b": {input: 2, output: 1}},
	})
	q.workload.spare = true
	q.share = Fraction{[]int64{0, 1000, 5000, 20_000, 60_000}[r.IntN(5)]}
	if r.IntN(3) == 0 {
		q.Retry = &RetryOptions{Patience: time.Minute}
	}
	how := []string{"truth", "truth", "fixed:20", "quantile:0.9"}[r.IntN(4)]
	if err := q.Estimate.Set(how); err != nil {
		t.Fatal(err)
	}
	return q
}

// alone returns the number of calls that one limit denies with a capacity while all others are
// shadow limits. The search computes it in another way.
func (q *randomQuestion) alone(t *testing.T, l *LimitSuggested, capacity int64) int64 {
	t.Helper()
	d := &sizedLimit{limit: weir.Limit{
		Kind: l.Kind, Capacity: l.Capacity, RefillAmount: l.RefillAmount,
	}}
	other := shadowOthers(q.limits, l.Field, capacity, d.sized(capacity).RefillAmount)
	return firstDenied(t, other, q.workload, q.SuggestOptions)
}

// sampled counts the cases that were checked.
type sampled struct{ sized, denying, smaller, tenths, broken int }

// check checks that the limit denies the reported number of calls by itself, that this is at most
// the share, and that one step less denies more.
func (c *sampled) check(t *testing.T, q *randomQuestion, l *LimitSuggested) {
	t.Helper()
	c.sized++
	n := q.alone(t, l, l.SuggestedCapacity)
	if n != l.DeniedAlone || n > q.share.apply(l.Calls) {
		t.Errorf("%s: %d denies %d alone, not %d, and may %d", l.Field, l.SuggestedCapacity, n,
			l.DeniedAlone, q.share.apply(l.Calls))
	}
	if n > 0 {
		c.denying++
	}
	if l.SuggestedCapacity == 1 {
		return
	}
	c.smaller++
	less := roundNumber(roundUp(l.SuggestedCapacity) - 1)
	if denied := q.alone(t, l, less); denied <= n {
		t.Errorf("%s: %d denies %d, and so does the smaller %d", l.Field, l.SuggestedCapacity, n, less)
	}
	if l.SuggestedCapacity >= 10 {
		c.tenths++
		if q.alone(t, l, l.SuggestedCapacity*9/10) > n {
			c.broken++
		}
	}
}

// TestSuggestRandom checks random limits. All together must deny at most the share, as a separate
// replay shows. Each limit by itself must deny at most its part, and the next smaller capacity
// more. A capacity that is smaller by a tenth may deny fewer calls by chance, but seldom does.
func TestSuggestRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &sampled{}
	for round := range soak.Amount(8, 24) {
		q := newRandomQuestion(t, rand.New(rand.NewPCG(seed, uint64(round))))
		s, err := Suggest(t.Context(), q.limits, q.workload, q.share, q.SuggestOptions)
		if err != nil {
			t.Fatal(err)
		}
		n := firstDenied(t, s.Definitions, q.workload, q.SuggestOptions)
		if n != s.Denied || n > s.MayDeny {
			t.Errorf("%d are denied, %d suggested, %d allowed", n, s.Denied, s.MayDeny)
		}
		if n := firstDenied(t, q.limits, q.workload, q.SuggestOptions); n != s.DeniedNow {
			t.Errorf("%d are denied now, not %d", n, s.DeniedNow)
		}
		for _, l := range s.Limits {
			c.check(t, q, l)
		}
		if t.Failed() {
			t.Fatalf("round %d: %v, estimate %v, retry %v", round, &q.share, &q.Estimate, q.Retry != nil)
		}
	}
	t.Logf("%d limits were sized, %d of them deny; one step less denies more for all %d, "+
		"a tenth less for %d of %d", c.sized, c.denying, c.smaller, c.broken, c.tenths)
	if c.denying == 0 || c.denying == c.sized || c.broken*100 < c.tenths*95 {
		t.Error("the sample says too little, or too many could be smaller by a tenth")
	}
}

// TestSuggestIsReproducible checks that the same arguments have the same result on any number of processors.
func TestSuggestIsReproducible(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	d := randomConfiguration(r)
	var before string
	for range 3 {
		w := NewWorkload(traceOf(each(300, 0, 70, 20)...), &WorkloadOptions{
			Entities: 3, Costs: Costs{"a": {call: 1}, "b": {input: 1}},
		})
		w.spare = true
		s, err := Suggest(t.Context(), d, w, Fraction{7000}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Definitions = nil
		all, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		text := string(all)
		if before != "" && before != text {
			t.Errorf("got\n%s\nand before\n%s", text, before)
		}
		before = text
	}
}
