package livetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// judge checks the records and items of a run, and logs them. Checks that depend on the speed of
// the machine apply only to a long run.
func (f *fleet) judge(t testing.TB) {
	t.Helper()
	t.Logf("%s: %s", f.name, f.ends())
	if f.offer.Seconds >= 30 && !f.held() {
		t.Errorf("%s: this machine did not hold the rates", f.name)
	}
	calls := f.calls()
	for _, side := range f.sides {
		c := calls[side]
		share := 100 * c.Denied / max(1, c.Denied+c.Admitted)
		t.Logf("%s: %s: admitted %d, denied %d (%d %%), failed %d",
			f.name, side, c.Admitted, c.Denied, share, c.Failed)
		switch {
		case c.Failed > 0:
			t.Errorf("%s: %s: %d calls failed: %s", f.name, side, c.Failed, f.failure(side))
		case c.Admitted == 0 || c.Denied == 0:
			t.Errorf("%s: %s was admitted %d and denied %d times", f.name, side, c.Admitted, c.Denied)
		case f.demanding() && (share < 20 || share > 80):
			t.Errorf("%s: %s was denied %d %% of its calls, want 20 to 80", f.name, side, share)
		}
	}
	for _, h := range Histories(&f.world, f.records) {
		f.judgeHistory(t, h)
	}
}

// demanding reports whether the rates of a run count: it was long, and the machine kept up.
func (f *fleet) demanding() bool { return f.offer.Seconds >= 30 && f.held() }

// latest is the longest delay of a call on a machine that keeps up, in microseconds.
const latest = 500_000

// held reports whether every call was made at about its time.
func (f *fleet) held() bool {
	return !slices.ContainsFunc(f.records, func(r Record) bool {
		return r.Kind == End && (r.Dropped > 0 || r.LateUS > latest)
	})
}

func (f *fleet) judgeHistory(t testing.TB, h *History) {
	t.Helper()
	name := fmt.Sprintf("%s: %s/%s", f.name, h.Entity, h.Limit)
	found := h.Check()
	n, room := h.Doublings()
	took := time.Duration(found.ToUS-found.FromUS) * time.Microsecond
	t.Logf("%s: the worst interval has %d milli-units of excess in %v; doublings %d (room %d)",
		name, found.ExcessMilli, took, n, room)
	if found.ExcessMilli > 0 {
		t.Errorf("%s: admitted %d milli-units too many in %v", name, found.ExcessMilli, took)
	}
	if own := f.world.Limits[h.Entity]; n != 0 && n != f.doubles && len(own) > 0 {
		t.Errorf("%s: got %d doublings, want %d", name, n, f.doubles)
	}
	a := h.Account(f.records, f.items)
	t.Logf("%s: made %d + refilled %v = consumed %d + left %d + off %d; "+
		"refills %v, broken %d; lost by Python %d", name, a.Made, a.Refilled, a.Consumed, a.Left, a.Off, a.Writes, a.Broken, a.Lost)
	less, more := h.Unknown()
	if a.Off != 0 && less+more == 0 {
		t.Errorf("%s: %d milli-units are not accounted for", name, a.Off)
	}
	if a.Consumed < h.Consumed()-less || a.Consumed > h.Consumed()+more {
		t.Errorf("%s: the items say that %d milli-units were consumed, the callers %d "+
			"(unknown are %d less and %d more)", name, a.Consumed, h.Consumed(), less, more)
	}
	if f.scarce[h.Limit] == h.Entity {
		f.judgeScarce(t, name, h, a)
	}
}

// judgeScarce checks the admitted part of the ideal, and how it divides among the sides.
func (f *fleet) judgeScarce(t testing.TB, name string, h *History, a *Account) {
	t.Helper()
	ideal := h.Ideal()
	left := h.Remainder(f.items, milli*slices.Max(f.offer.Costs[h.Limit]))
	raw, explained := h.Consumed()*1000/ideal, (h.Consumed()+left+a.Lost)*1000/ideal
	t.Logf("%s: consumed %d of ideally %d milli-units (%d ‰); "+
		"with a remainder of %d and what Python lost %d ‰", name, h.Consumed(), ideal, raw, left, explained)
	if f.demanding() && explained < 990 {
		t.Errorf("%s: %d ‰ of the ideal, want at least 990", name, explained)
	}
	var units int64
	for _, s := range h.Sides() {
		units += s.Units
	}
	for _, side := range f.sides {
		s := h.Sides()[side]
		if s == nil {
			t.Errorf("%s: nothing was asked by %s", name, side)
			continue
		}
		share := s.Units * 1000 / max(1, units)
		t.Logf("%s: %s got %d of %d units (%d ‰)", name, side, s.Units, units, share)
		if f.demanding() && s.Units*8 < units {
			t.Errorf("%s: %s got less than a quarter of its fair share", name, side)
		}
	}
}

// calls counts the decisions by side.
func (f *fleet) calls() map[string]*Side {
	sides := map[string]*Side{SideGo: {}, SidePython: {}}
	for i := range f.records {
		if r := &f.records[i]; r.Kind == Call {
			switch s := sides[r.Side()]; r.Verdict {
			case Admitted:
				s.Admitted++
			case Denied:
				s.Denied++
			default:
				s.Failed++
			}
			if r.Settled != nil && r.Settled.Err != "" {
				sides[r.Side()].Failed++
			}
		}
	}
	return sides
}

// failure returns the first error of a side.
func (f *fleet) failure(side string) string {
	for i := range f.records {
		r := &f.records[i]
		if r.Kind != Call || r.Side() != side {
			continue
		}
		if r.Err != "" {
			return r.Err
		}
		if r.Settled != nil && r.Settled.Err != "" {
			return r.Settled.Err
		}
	}
	return "nothing said"
}

// ends describes how well the processes kept their rates.
func (f *fleet) ends() string {
	var b strings.Builder
	for i := range f.records {
		if r := &f.records[i]; r.Kind == End {
			fmt.Fprintf(&b, "%s offered %d, dropped %d, at most %d ms late; ",
				r.Process, r.Offered, r.Dropped, r.LateUS/1000)
		}
	}
	return strings.TrimSuffix(b.String(), "; ")
}
