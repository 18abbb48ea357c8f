package replay

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

func TestEstimateFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Estimate{
		"truth":             {},
		"fixed:0":           {set: true},
		"fixed:1024":        {fixed: 1024, set: true},
		"fixed:1000000000":  {fixed: 1_000_000_000, set: true},
		"quantile:0.95":     {share: 950_000},
		"quantile:0.5":      {share: 500_000},
		"quantile:0.999":    {share: 999_000},
		"quantile:00.95000": {share: 950_000},
	} {
		var got Estimate
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		var again Estimate
		if err := again.Set(got.String()); err != nil || again != got {
			t.Errorf("%s: got %+v, %v from %s, want the same", text, again, err, got.String())
		}
	}
	const usage = "must be truth, fixed:N or quantile:Q, like fixed:1024 or quantile:0.95"
	const share = "quantile:Q: Q must be between 0 and 1, like 0.95, with at most six decimals"
	for text, want := range map[string]string{
		"": usage, "Truth": usage, "fixed": "fixed:N: N must be a whole number", "mean:5": usage,
		"truth:1": usage, "fixed:-1": "fixed:N: N must not be negative",
		"fixed:1.5":        "fixed:N: N must be a whole number",
		"fixed:1000000001": "fixed:N: N must be at most 1,000,000,000",
		"quantile:":        share, "quantile:0": share, "quantile:1": share, "quantile:1.5": share,
		"quantile:0.0": share, "quantile:.5": share, "quantile:-0.5": share, "quantile:0.1234567": share,
		"quantile:95": share, "quantile:0.9x": share, "quantile:1e-1": share,
	} {
		got := Estimate{fixed: 7, set: true}
		err := got.Set(text)
		if err == nil || err.Error() != want || got != (Estimate{fixed: 7, set: true}) {
			t.Errorf("%q: got %+v, %v, want %q", text, got, err, want)
		}
	}
}

// TestFixedEstimate checks that calls reserve the estimate and settle with the truth, and that the
// report counts both.
func TestFixedEstimate(t *testing.T) {
	t.Parallel()
	d := &weir.Definitions{System: []weir.Limit{
		{Name: "otpm", Capacity: 100, RefillAmount: 1, RefillPeriod: 24 * time.Hour},
	}}
	calls := []trace.Call{
		callOf(2, 1000, 0, 10), // 40 of 100, then 10
		callOf(3, 2000, 0, 50), // 40 of 90, then 50: an overrun of 10
		callOf(4, 3000, 0, 40), // 40 of 40: nothing left
		callOf(5, 4000, 0, 1),  // 40 do not fit
	}
	r, err := Run(t.Context(), d, NewWorkload(traceOf(calls...), nil),
		&Options{Estimate: Estimate{fixed: 40, set: true}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Totals.Admitted != 3 || r.Totals.Denied != 1 || r.Limits[0].Used.Int64() != 100 {
		t.Errorf("got %+v and %v used, want 3 admitted, 1 denied, and the truth used", r.Totals, r.Limits[0].Used)
	}
	e := r.Estimates
	if e.Calls != 3 || e.Covered != 2 || e.Overruns != 1 || e.CoveredPercent != "66.6" ||
		e.TokensEstimated.Int64() != 120 || e.TokensUsed.Int64() != 100 || e.TokensOver.Int64() != 30 ||
		e.TokensUnder.Int64() != 10 || e.OverPercent != "30.0" || r.Estimate != "fixed:40" {
		t.Errorf("got %+v of %s, want 2 of 3 covered, 30 over and 10 under", e, r.Estimate)
	}
	r, err = Run(t.Context(), d, NewWorkload(traceOf(calls...), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Totals.Admitted != 3 || r.Estimates != nil || r.Estimate != "truth" {
		t.Errorf("got %+v and %+v, want the last call denied, and no estimates", r.Totals, r.Estimates)
	}
	// A call that can never fit is an error, as without estimates.
	r, err = Run(t.Context(), d, NewWorkload(traceOf(calls...), nil),
		&Options{Estimate: Estimate{fixed: 101, set: true}})
	if err != nil || r.Totals.Errors != 4 || r.Estimates.Calls != 0 {
		t.Errorf("got %+v, %v, want four calls that can never be admitted", r, err)
	}
}

// TestLearnedEstimate checks that each entity's calls to each model are learned separately, when
// they end.
func TestLearnedEstimate(t *testing.T) {
	t.Parallel()
	recorded := traceOf()
	recorded.EntityColumn = "who"
	recorded.Callers = []trace.EntityModel{{Entity: "b", Resource: "y"}, {Entity: "a", Resource: "y"}}
	for i := range 4000 {
		c := callOf(i+2, int64(i)*1000, 0, 100)
		if c.Caller = int32(i % 2); c.Caller == 1 {
			c.Output = 1000 + int64(i)%10
		}
		recorded.Calls = append(recorded.Calls, c)
	}
	d := &weir.Definitions{System: []weir.Limit{{Name: "otpm", Capacity: 1_000_000_000}}}
	how := Estimate{share: 900_000}
	r, err := Run(t.Context(), d, NewWorkload(recorded, &WorkloadOptions{
		Latency: Latency{Base: 500 * time.Millisecond},
	}), &Options{Estimate: how})
	if err != nil {
		t.Fatal(err)
	}
	e := r.Estimates
	if len(e.Callers) != 2 || e.CallersTotal != 2 || e.Calls != 4000 {
		t.Fatalf("got %+v, want two callers and 4000 calls", e)
	}
	for _, c := range e.Callers {
		// Learned together, the estimates would be about 1009 for both, and those of the short
		// calls over ten times their use.
		over := c.TokensOver.Int64() * 100 / c.TokensUsed.Int64()
		if c.Covered*100 < c.Calls*85 || over > 12 {
			t.Errorf("%s: got %d of %d covered and %d %% over, want 85 %% and few", c.Entity, c.Covered, c.Calls, over)
		}
	}
	first, second := e.Callers[0], e.Callers[1]
	if first.Covered*second.Calls > second.Covered*first.Calls {
		t.Errorf("got %+v before %+v, want the worst coverage first", first, second)
	}
}

// TestEstimateTooLarge checks that a cost that overflows is an error with the call's line.
func TestEstimateTooLarge(t *testing.T) {
	t.Parallel()
	d := &weir.Definitions{System: []weir.Limit{{Name: "tpm", Capacity: 10}}}
	w := NewWorkload(traceOf(callOf(7, 0, math.MaxInt64-5, 5)), nil)
	_, err := Run(t.Context(), d, w, &Options{Estimate: Estimate{fixed: 6, set: true}})
	want := "t.csv:7: the cost tpm=total of the call's estimate does not fit in 64 bits"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err = Run(t.Context(), d, w, nil); err != nil {
		t.Errorf("got %v, want the truth to be counted", err)
	}
}

// TestRunAgain checks that a workload can be replayed repeatedly and concurrently, with other
// limits, with the same result.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	var calls []trace.Call
	for i := range 2000 {
		calls = append(calls, callOf(i+2, int64(i)*50, int64(i%7), int64(i%300)))
	}
	w := NewWorkload(traceOf(calls...), &WorkloadOptions{Entities: 3, Seed: 5, Latency: Latency{Base: time.Second}})
	var how Estimate
	if err := how.Set("quantile:0.9"); err != nil {
		t.Fatal(err)
	}
	run := func(capacity int64) *Report {
		d := &weir.Definitions{System: []weir.Limit{{Name: "tpm", Capacity: capacity}}}
		r, err := Run(t.Context(), d, w, &Options{Estimate: how, Retry: &RetryOptions{Patience: 5 * time.Second}})
		if err != nil {
			t.Error(err)
			return &Report{}
		}
		r.Speed = Speed{}
		return r
	}
	results := make(chan *Report, 4)
	for range cap(results) {
		go func() { results <- run(15_000) }()
	}
	want := run(15_000)
	for range cap(results) {
		if got := <-results; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if other := run(30_000); other.Totals.Denied >= want.Totals.Denied || other.Totals.Denied == 0 {
		t.Errorf("got %d denied with twice the capacity, want fewer than %d", other.Totals.Denied, want.Totals.Denied)
	}
	if !strings.HasPrefix(want.Limits[0].Entity, "tenant-") {
		t.Errorf("got %+v, want tenants", want.Limits[0])
	}
}

// TestEstimatesForgetNoPair checks that all pairs of an entity and a model that a trace may have are
// learned, and none is forgotten for another.
func TestEstimatesForgetNoPair(t *testing.T) {
	t.Parallel()
	const pairs = 10_500 // more than the default bound of an estimator
	var how Estimate
	if err := how.Set("quantile:0.5"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ room, known int64 }{{pairs, pairs}, {pairs - 500, pairs - 500}} {
		e, err := newEstimates(how, int(tt.room))
		if err != nil {
			t.Fatal(err)
		}
		for i := range pairs {
			by := &pricedCaller{EntityModel: trace.EntityModel{Entity: fmt.Sprint("e", i), Resource: "llm"}}
			a := &Attempt{
				Call: &trace.Call{Output: 7}, Entity: by.Entity, Resource: by.Resource, payer: by,
			}
			for range 3 {
				if err := e.Completed(a); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := e.learned.Report()
		if r.KnownKeys != tt.known || r.ForgottenKeys != pairs-tt.known {
			t.Errorf("room for %d: %d are known and %d forgotten",
				tt.room, r.KnownKeys, r.ForgottenKeys)
		}
	}
}
