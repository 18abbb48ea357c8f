package memory_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// four returns a limit of each kind.
func four() []weir.Limit {
	return []weir.Limit{
		named("a", bucket(10, 10, time.Minute)), named("b", window(10, time.Minute)),
		named("c", concurrency(10, time.Minute)), named("d", budget(10, "day", "")),
	}
}

func each(n int64) weir.Costs { return weir.Costs{"a": n, "b": n, "c": n, "d": n} }

// available returns what is available of each limit.
func (w *world) available() []int64 {
	w.t.Helper()
	var out []int64
	for _, s := range w.status() {
		out = append(out, s.Available)
	}
	return out
}

func (w *world) availableIs(want ...int64) {
	w.t.Helper()
	if got := w.available(); !slices.Equal(got, want) {
		w.t.Errorf("available: got %v, want %v", got, want)
	}
}

func TestSettleEveryVerbOnEveryKind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		verb   weir.Verb
		totals weir.Costs
		want   []int64
	}{
		{weir.VerbAdjust, each(2), []int64{8, 8, 8, 8}},
		{weir.VerbAdjust, weir.Costs{"a": 14, "b": 14, "d": 14}, []int64{-4, -4, 6, -4}},
		{weir.VerbAdjust, nil, []int64{6, 6, 6, 6}},
		{weir.VerbComplete, each(1), []int64{9, 9, 10, 9}},
		{weir.VerbComplete, nil, []int64{6, 6, 10, 6}},
		{weir.VerbCancel, nil, []int64{10, 10, 10, 10}},
		{weir.VerbExtend, nil, []int64{6, 6, 6, 6}},
	} {
		w := newWorld(t, four()...)
		l := w.at(0).reserve(charge(each(4)))
		w.settle(l, tc.verb, tc.totals)
		w.availableIs(tc.want...)
		lives := tc.verb == weir.VerbAdjust || tc.verb == weir.VerbExtend
		if (l.holdings != nil) != lives {
			t.Errorf("%s: got holdings %v, want some: %v", tc.verb, l.holdings, lives)
		}
	}
}

func TestSettleKeepsTheCallersArguments(t *testing.T) {
	t.Parallel()
	for _, verb := range []weir.Verb{
		weir.VerbAdjust, weir.VerbComplete, weir.VerbCancel, weir.VerbExtend,
	} {
		w := newWorld(t, four()...)
		l := w.at(0).reserve(charge(each(4)))
		w.at(10).settle(l, weir.VerbAdjust, weir.Costs{"b": 6})
		s := w.settlement(l, verb, weir.Costs{"a": 1, "b": 5, "d": 9})
		before := deepCopy(s)
		w.at(1_000)
		if _, err := memory.Settle(w.store, w.now, s); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(s, before) {
			t.Errorf("%s: got settlement %+v, want %+v", verb, s, before)
		}
	}
}

func deepCopy(s *memory.Settlement) *memory.Settlement {
	c := *s
	c.Holdings = slices.Clone(s.Holdings)
	for i := range c.Holdings {
		c.Holdings[i].Parts = slices.Clone(c.Holdings[i].Parts)
		c.Holdings[i].Pieces = slices.Clone(c.Holdings[i].Pieces)
	}
	c.Totals = slices.Clone(s.Totals)
	for i := range c.Totals {
		c.Totals[i] = slices.Clone(c.Totals[i])
	}
	return &c
}

func TestSettleReturnsTheTotals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, window(10, time.Minute))
	l := w.at(0).reserve(charge(x(1)), charge(x(2)))
	s := w.settlement(l, weir.VerbAdjust, nil)
	s.Totals[0] = []driver.Part{{Charge: 0, Units: 5}, {Charge: 1, Units: 4}}
	out, err := memory.Settle(w.at(7).store, w.now.Add(time.Microsecond), s)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Holdings[0].Parts; !slices.Equal(got, s.Totals[0]) {
		t.Errorf("parts: got %v, want %v", got, s.Totals[0])
	}
	if !out.At.Equal(w.now) {
		t.Errorf("at: got %v, want %v", out.At, w.now)
	}
}

func TestSettleRefusedAppliesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, four()...)
	l := w.at(0).reserve(charge(each(4)))
	most := int64(math.MaxInt64)
	w.reserve(charge(weir.Costs{"a": 1, "b": 1, "c": 1, "d": 1}))
	for _, tc := range []struct {
		totals weir.Costs
		field  string
	}{
		{weir.Costs{"a": most / 1000, "b": 1}, ""},
		{weir.Costs{"a": most/1000 + 20, "b": 1}, "totals.a"},
		{weir.Costs{"a": most, "b": 1}, "totals.a"},
		{weir.Costs{"a": 1, "b": most}, "totals.b"},
		{weir.Costs{"a": 1, "b": 1, "d": most}, "totals.d"},
	} {
		if tc.field == "" {
			w.settle(l, weir.VerbAdjust, tc.totals)
			w.settle(l, weir.VerbAdjust, each(4))
			continue
		}
		w.refuseSettle(l, weir.VerbAdjust, tc.totals, tc.field)
		w.availableIs(5, 5, 5, 5)
	}
	w.settle(l, weir.VerbAdjust, weir.Costs{"b": most - 1, "d": most - 1})
	w.cancel(l)
	w.availableIs(9, 9, 9, 9)
}

// TestSettleAfterTheStateWasSwept checks that a lease can be settled after the state of its limits
// has been removed.
func TestSettleAfterTheStateWasSwept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, four()...)
	l := w.at(0).reserve(charge(each(4)))
	const later = 2 * 24 * 3_600_000
	for i := range int64(2_000) {
		w.at(later + 300*i).reserve(weir.Charge{
			Entity: "other", Resource: subjectResource, Costs: weir.Costs{"c": 0, "d": 0},
		})
	}
	w.settle(l, weir.VerbAdjust, weir.Costs{"a": 18, "b": 6, "c": 1, "d": 9})
	w.availableIs(-4, 8, 10, 10)
	w.extend(l)
	w.availableIs(-4, 8, 10, 10)
	w.complete(l, 0)
	w.availableIs(-4, 8, 10, 10)
}
