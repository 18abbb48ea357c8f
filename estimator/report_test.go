package estimator_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

func TestReport(t *testing.T) {
	t.Parallel()
	e := open(t, &estimator.Options{Share: 900_000})
	a, b := estimator.Key{Entity: "a", Model: "m"}, estimator.Key{Entity: "b", Model: "m"}
	e.Learn(a, 10, 10)
	e.Learn(a, 10, 4)
	e.Learn(b, 10, 13)
	got, want := e.Report(), estimator.Report{
		Share: 900_000,
		All:   estimator.Score{Calls: 3, Covered: 2, Used: 27, Over: 6, Under: 3},
		Models: []estimator.Row{{
			Key:   estimator.Key{Model: "m"},
			Score: estimator.Score{Calls: 3, Covered: 2, Used: 27, Over: 6, Under: 3},
		}},
		Keys: []estimator.Row{
			{Key: b, Score: estimator.Score{Calls: 1, Used: 13, Under: 3}},
			{Key: a, Score: estimator.Score{Calls: 2, Covered: 2, Used: 14, Over: 6}},
		},
		KnownModels: 1, KnownKeys: 2,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}

	learn(e, a, 3, 18)
	row := e.Report().Keys[0]
	now := estimator.Estimate{Tokens: 4, Basis: estimator.ByKey, Seen: 20}
	if row.Key != a || row.Estimate != now || e.Report().Models[0].Estimate.Seen != 21 {
		t.Errorf("got %+v, want %+v", row, now)
	}
}

func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	e := open(t, nil)
	for n := range 300 {
		e.Learn(estimator.Key{Entity: fmt.Sprint(n), Model: fmt.Sprint(n)}, 0, int64(n*100))
	}
	r := e.Report()
	if len(r.Keys) != 100 || len(r.Models) != 100 || r.KnownKeys != 300 || r.All.Calls != 300 {
		t.Errorf("%d keys and %d models of %d", len(r.Keys), len(r.Models), r.KnownKeys)
	}
	if r.Keys[0].Key.Entity != "299" || r.Models[99].Key.Model != "200" {
		t.Errorf("from %v to %v", r.Keys[0].Key, r.Models[99].Key)
	}
}

func TestLoss(t *testing.T) {
	t.Parallel()
	tests := []struct{ over, under, share, want int64 }{
		{0, 0, 950_000, 0},
		{100, 0, 950_000, 5},
		{101, 0, 950_000, 6}, // 5.05, rounded up
		{0, 100, 950_000, 95},
		{100, 100, 123_456, 100},
		{math.MaxInt64, 0, 1_000_000, 0},
		{math.MaxInt64, 0, 0, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, 999_999, math.MaxInt64},
		{-1, -1, 500_000, 0},
	}
	for _, test := range tests {
		s := estimator.Score{Over: test.over, Under: test.under}
		if got := s.Loss(test.share); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}
