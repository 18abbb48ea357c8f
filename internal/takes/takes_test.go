package takes_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/takes"
)

func TestCost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		units  []int64
		shadow bool
		want   int64
		code   error
	}{
		{},
		{units: []int64{7}, want: 7},
		{units: []int64{7, 0, 5}, want: 12},
		{units: []int64{math.MaxInt64}, want: math.MaxInt64},
		{units: []int64{math.MaxInt64 - 1, 1}, want: math.MaxInt64},
		{units: []int64{math.MaxInt64, 1}, code: weir.NeverSatisfiable},
		{units: []int64{1, math.MaxInt64}, code: weir.NeverSatisfiable},
		{units: []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, code: weir.NeverSatisfiable},
		{units: []int64{math.MaxInt64, 1}, shadow: true, code: weir.Invalid},
	} {
		take := &weir.Take{Limit: &weir.Limit{Name: "tpm", Shadow: tc.shadow}}
		for _, n := range tc.units {
			take.Parts = append(take.Parts, weir.Part{Units: n})
		}
		got, err := takes.Cost(take)
		if got != tc.want || !errors.Is(err, tc.code) {
			t.Errorf("%v: got %d, %v; want %d, %v", tc.units, got, err, tc.want, tc.code)
		}
		e, ok := errors.AsType[*weir.Error](err)
		if ok && (e.Field != "costs.tpm" || e.Value != "9223372036854775807") {
			t.Errorf("%v: got %+v, want it to name the costs of tpm", tc.units, e)
		}
		if sum, fits := takes.Sum(take.Parts); sum != tc.want || fits != (tc.code == nil) {
			t.Errorf("%v: the sum is %d, %t; want %d", tc.units, sum, fits, tc.want)
		}
	}
}
