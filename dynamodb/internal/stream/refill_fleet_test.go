package stream_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// run makes the calls of a load in rounds, each of which ends with a pass of the aggregator.
func (f *fleet) run(rounds int, load func(round int) []int) {
	f.Helper()
	from := f.clock.now()
	for round := range rounds {
		begin := from.Add(time.Duration(round) * fleetEvery)
		for _, ms := range load(round) {
			f.clock.next(begin.Add(time.Duration(ms) * time.Millisecond))
			f.call()
		}
		f.clock.next(begin.Add(fleetEvery - 100*time.Millisecond))
		f.pass()
	}
}

// The loads are the milliseconds of the calls of a round.
var fleetLoads = []struct {
	name string
	f    func(round int) []int
}{
	{"steady", func(int) []int { return []int{0, 1250, 2500, 3750} }},
	{"overload", func(int) []int {
		return []int{0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500}
	}},
	{"bursts", func(round int) []int { // 40 calls at once every half minute
		if round%6 != 0 {
			return nil
		}
		return make([]int, 40)
	}},
}

// fleetRun has the cost of a fleet, and the units that were admitted.
type fleetRun struct {
	calls, admitted int
	// ideal is the number of units that one bucket in one place would admit.
	ideal int
	// beyond is the most that was admitted in any interval beyond the capacity and the gain, in
	// units.
	beyond int64
	// trips and milli are sums over the calls of a kind.
	costs         map[string]cost
	count         map[string]int64
	refills, lost int64
	// aggregator is the write units of the refills, in thousandths.
	aggregator int64
}

// judge sums up a fleet. It fails if more was admitted in an interval than the bucket had at its
// beginning, with what clients that leave rf alone may have above the capacity, and gained in it.
func (f *fleet) judge() *fleetRun {
	f.Helper()
	s := f.aggregator.Summary()
	r := &fleetRun{
		calls: len(f.calls), costs: make(map[string]cost), count: make(map[string]int64),
		refills: s.Refills, lost: s.RefillsLost,
		aggregator: f.units.Snapshot().Total().Capacity.WriteMilli + 1000*s.RefillsLost,
	}
	balance, at := fleetRate.CapacityMilli, f.calls[0].at.UnixMilli()
	for i, c := range f.calls {
		sum := r.costs[c.kind]
		r.costs[c.kind] = cost{sum.trips + c.cost.trips, sum.milli + c.cost.milli}
		r.count[c.kind]++
		if c.admitted {
			r.admitted++
		}
		now := c.at.UnixMilli()
		balance, at = fleetRate.Refill(balance, at, now), now
		if balance >= 1000 {
			balance -= 1000
			r.ideal++
		}
		var taken int64
		for _, to := range f.calls[i:] {
			if to.admitted {
				taken += 1000
			}
			gain := fleetRate.Gain(now, to.at.UnixMilli())
			r.beyond = max(r.beyond, (taken-gain-fleetRate.CapacityMilli)/1000)
			if had := max(c.value, fleetRate.CapacityMilli); taken > had+gain {
				f.Errorf("%d were admitted from %v to %v: the bucket had %d and gained %d",
					taken, c.at, to.at, had, gain)
			}
		}
	}
	return r
}

const fleetHeader = "| clients | load | calls | one bucket admits | admitted " +
	"| too many in an interval | round trips of a Go call | of a Python call | write units of a Go call | of a Python call " +
	"| refills | their write units for each call |\n" +
	"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"

// fleetRow formats a run without refills and one with them in Markdown.
func fleetRow(clients, load string, without, with *fleetRun) string {
	per := func(milli, calls int64) string {
		hundredths := (milli + 5*calls) / (10 * calls)
		return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
	}
	both := func(kind string, of func(c cost) int64) string {
		n := without.count[kind]
		if n == 0 {
			return ""
		}
		return per(of(without.costs[kind]), n) + " → " + per(of(with.costs[kind]), n)
	}
	trips := func(c cost) int64 { return 1000 * c.trips }
	units := func(c cost) int64 { return c.milli }
	return fmt.Sprintf("| %s | %s | %d | %d | %d → %d | %d → %d | %s | %s | %s | %s | %d | %s |\n",
		clients, load, with.calls, with.ideal,
		without.admitted, with.admitted, without.beyond, with.beyond,
		both(inGo, trips), both(inPython, trips), both(inGo, units), both(inPython, units),
		with.refills, per(with.aggregator, int64(with.calls)))
}

// fleets are the clients that call in turn.
var fleets = []struct {
	name  string
	kinds []string
}{
	{"Go", []string{inGo}},
	{"Python", []string{inPython}},
	{"Go and Python", []string{inGo, inPython}},
	{"Go and Python, 1 to 3", []string{inGo, inPython, inPython, inPython}},
}

// TestRefillFleets counts what calls cost their clients and the aggregator, and what is admitted,
// with refills ahead and without.
func TestRefillFleets(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/dynamodb.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{fleetHeader}
	p := newPython(t)
	t.Run("runs", func(t *testing.T) {
		for _, of := range fleets {
			for _, load := range fleetLoads {
				n := len(rows)
				rows = append(rows, "")
				t.Run(of.name+" "+load.name, func(t *testing.T) {
					t.Parallel()
					var runs [2]*fleetRun
					for i, refill := range []bool{false, true} {
						f := newFleet(t, of.kinds, p, refill)
						f.run(24, load.f)
						runs[i] = f.judge()
					}
					compareFleets(t, runs[0], runs[1])
					rows[n] = fleetRow(of.name, load.name, runs[0], runs[1])
				})
			}
		}
	})
	for _, row := range rows {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/dynamodb.md does not have the line\n%s", row)
		}
	}
	t.Log("\n" + strings.Join(rows, ""))
}

// compareFleets compares a fleet with refills ahead with the same fleet without. A fleet that
// weir is part of admits what one bucket would. Python clients alone admit more: their takes
// leave rf alone, so that the time in which the bucket was full counts twice.
func compareFleets(t *testing.T, without, with *fleetRun) {
	t.Helper()
	for _, r := range []*fleetRun{without, with} {
		exact := r.count[inGo] > 0
		if r.admitted < r.ideal || exact && (r.admitted > r.ideal || r.beyond > 0) {
			t.Errorf("%d were admitted, and %d too many in an interval; one bucket would admit %d",
				r.admitted, r.beyond, r.ideal)
		}
	}
	if with.beyond > without.beyond {
		t.Errorf("%d too many in an interval with refills, and %d without", with.beyond, without.beyond)
	}
	got, want := with.aggregator, 2000*with.refills+1000*with.lost
	if got != want || without.aggregator != 0 {
		t.Errorf("%d refills, and %d too late, cost %d thousandths of a unit, want %d",
			with.refills, with.lost, got, want)
	}
	if with.costs[inGo].trips < without.costs[inGo].trips {
		t.Error("refills save round trips of Go clients: say so in docs/dynamodb.md")
	}
}
