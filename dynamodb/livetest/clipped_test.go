package livetest

import "testing"

// TestClipped checks the gain and the refunds for which a bucket had no room.
func TestClipped(t *testing.T) {
	t.Parallel()
	// take is a call of a number of units at a second of the run; settled changes them later.
	take := func(at, units int64, changes ...Settled) Record {
		r := Record{
			Kind: Call, Process: "go-0", Entity: "e", Resource: "r", Verdict: Admitted,
			Costs: map[string]int64{"l": units}, Before: origin + at*second - 1, After: origin + at*second,
		}
		if n := len(changes); n > 0 {
			r.Adjusts, r.Settled = changes[:n-1], &changes[n-1]
		}
		return r
	}
	to := func(at, units int64) Settled {
		return Settled{
			Totals: map[string]int64{"l": units}, Before: origin + at*second, After: origin + at*second,
		}
	}
	cases := []struct {
		name              string
		records           []Record
		clipped, consumed int64 // units
	}{
		{"idle", nil, 100, 0},
		{"in use from the start", []Record{take(0, 100)}, 0, 100},
		{"full for the first half", []Record{take(5, 80)}, 50, 80},
		{"full again", []Record{take(0, 30)}, 70, 30},
		{"a refund without room", []Record{take(0, 30, to(2, 0))}, 100, 0},
		{"an adjust, and the end with more", []Record{take(0, 30, to(1, 10), to(1, 90))}, 10, 90},
		{"two adjusts", []Record{take(0, 20, to(1, 60), to(1, 80), to(9, 90))}, 10, 90},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := Histories(&World{
				Resource: "r", StartUS: origin, EndUS: origin + 10*second,
				Limits: map[string]map[string]Limit{"e": {"l": {100, 10, 1}}},
			}, c.records)[0]
			if got := h.Clipped(); got != c.clipped*milli || h.Consumed() != c.consumed*milli {
				t.Errorf("got %d milli-units clipped and %d consumed, want %d and %d",
					got, h.Consumed(), c.clipped*milli, c.consumed*milli)
			}
		})
	}
}
