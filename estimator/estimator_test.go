package estimator_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

// learn learns n calls of the same size.
func learn(e *estimator.Estimator, k estimator.Key, used int64, n int) {
	for range n {
		e.Learn(k, 0, used)
	}
}

func TestFallsBackIfTooFewCallsAreKnown(t *testing.T) {
	t.Parallel()
	e := open(t, &estimator.Options{First: 500})
	var (
		acme  = estimator.Key{Entity: "acme", Model: "large"}
		other = estimator.Key{Entity: "other", Model: "large"}
		small = estimator.Key{Entity: "acme", Model: "small"}
	)
	expect := func(k estimator.Key, tokens int64, basis estimator.Basis, seen int64) {
		t.Helper()
		want := estimator.Estimate{Tokens: tokens, Basis: basis, Seen: seen}
		if got := e.Estimate(k); got != want {
			t.Errorf("%v: got %+v, want %+v", k, got, want)
		}
	}
	expect(acme, 500, estimator.ByFirst, 0)
	learn(e, acme, 20, 18)
	expect(acme, 500, estimator.ByFirst, 0)
	learn(e, acme, 20, 1)
	expect(acme, 20, estimator.ByKey, 19)
	expect(other, 20, estimator.ByModel, 19)
	expect(small, 20, estimator.ByAll, 19)

	// Calls of other keys of the model do not change the estimate of a key with enough calls.
	learn(e, other, 30, 19)
	expect(other, 30, estimator.ByKey, 19)
	expect(acme, 20, estimator.ByKey, 19)
	expect(estimator.Key{Entity: "new", Model: "large"}, 30, estimator.ByModel, 38)
}

func TestForgetsOldTraffic(t *testing.T) {
	t.Parallel()
	e := open(t, &estimator.Options{Window: 100})
	var k estimator.Key
	tokens := func() int64 { return e.Estimate(k).Tokens }
	learn(e, k, 30, 1_000)

	// Of 100 calls, a share of 95 % allows four above the answer, but not five.
	learn(e, k, 10, 1)
	learn(e, k, 25, 5)
	learn(e, k, 31, 4)
	if got := tokens(); got != 30 {
		t.Errorf("after four larger calls: got %d, want 30", got)
	}
	learn(e, k, 31, 1)
	if got := tokens(); got != 31 {
		t.Errorf("after five larger calls: got %d, want 31", got)
	}

	learn(e, k, 10, 95)
	if got := tokens(); got != 31 {
		t.Errorf("while five larger calls count: got %d, want 31", got)
	}
	learn(e, k, 10, 1)
	if got := tokens(); got != 10 {
		t.Errorf("when only four do: got %d, want 10", got)
	}
}

func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	e := open(t, nil)
	k := estimator.Key{Entity: "a", Model: "m"}
	learn(e, k, math.MaxInt64, 40)
	if got := e.Estimate(k).Tokens; got != math.MaxInt64 {
		t.Errorf("got %d", got)
	}
	e.Learn(k, math.MaxInt64, 0)
	e.Learn(k, math.MaxInt64, 0)
	r := e.Report()
	want := estimator.Score{
		Calls: 42, Covered: 2, Used: math.MaxInt64, Over: math.MaxInt64, Under: math.MaxInt64,
	}
	if r.All != want || r.Keys[0].Score != want || r.Models[0].Score != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	for _, share := range []int64{math.MinInt64, 0, 1, 950_000, 1_000_000, math.MaxInt64} {
		if got := r.All.Loss(share); got != math.MaxInt64 {
			t.Errorf("loss at %d: got %d", share, got)
		}
	}
}

func TestNegativeUseIsNotLearned(t *testing.T) {
	t.Parallel()
	e := open(t, nil)
	k := estimator.Key{Entity: "a", Model: "m"}
	for _, used := range []int64{-1, math.MinInt64} {
		learn(e, k, used, 20)
	}
	if got := e.Estimate(k); got.Basis != estimator.ByFirst || got.Tokens != 1_024 {
		t.Errorf("got %+v", got)
	}
	if r := e.Report(); r.Refused != 40 || r.All.Calls != 0 || r.KnownKeys != 0 {
		t.Errorf("got %+v", r)
	}
	e.Learn(k, math.MinInt64, 7)
	if r := e.Report(); r.All != (estimator.Score{Calls: 1, Used: 7, Under: 7}) {
		t.Errorf("a negative estimate is not 0: %+v", r.All)
	}
}

// TestLongNamesAreNotRemembered checks that calls with long names still count for what they share
// with others.
func TestLongNamesAreNotRemembered(t *testing.T) {
	t.Parallel()
	e := open(t, nil)
	longest := strings.Repeat("x", 256)
	for _, k := range []estimator.Key{
		{Entity: longest, Model: longest},
		{Entity: longest + "x", Model: "m"},
		{Entity: "a", Model: longest + "x"},
	} {
		learn(e, k, 9, 19)
	}
	tests := []struct {
		k    estimator.Key
		want estimator.Basis
	}{
		{estimator.Key{Entity: longest, Model: longest}, estimator.ByKey},
		{estimator.Key{Entity: longest + "x", Model: "m"}, estimator.ByModel},
		{estimator.Key{Entity: "a", Model: longest + "x"}, estimator.ByAll},
	}
	for _, test := range tests {
		if got := e.Estimate(test.k).Basis; got != test.want {
			t.Errorf("names of %d and %d bytes: by %s, want %s",
				len(test.k.Entity), len(test.k.Model), got, test.want)
		}
	}
	if r := e.Report(); r.KnownKeys != 1 || r.KnownModels != 2 || r.All.Calls != 57 {
		t.Errorf("got %+v", r)
	}
}
