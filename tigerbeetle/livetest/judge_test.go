//go:build cgo

package livetest

import (
	"slices"
	"time"
)

// outage is when TigerBeetle was killed, when it was started again, and when it first answered
// after that.
type outage struct{ from, started, over time.Time }

// use is a charge of a window at an instant.
type use struct {
	at    time.Time
	units int
}

// log is the charges of a window in order of time.
type log []use

// occupied returns what is in use at an instant, including charges at that instant.
func (l log) occupied(at time.Time) int {
	sum := 0
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].at.After(at) {
			continue
		}
		if !l[i].at.Add(outageWindow).After(at) {
			break
		}
		sum += l[i].units
	}
	return sum
}

// exceeded returns the most by which the capacity was exceeded. It looks only at the charges,
// because use rises only there.
func (l log) exceeded(capacity int) int {
	most := 0
	for i := range l {
		most = max(most, l.occupied(l[i].at)-capacity)
	}
	return most
}

// logs returns the charges of each key's window at the times that the store reported.
func (l *load) logs() [outageKeys]log {
	var logs [outageKeys]log
	for i := range l.all {
		if a := &l.all[i]; a.lease != nil {
			logs[a.key] = append(logs[a.key], use{a.lease.ReservedAt, a.units})
		}
	}
	for _, g := range logs {
		slices.SortFunc(g, func(a, b use) int { return a.at.Compare(b.at) })
	}
	return logs
}

// judge checks everything that callers were told.
func (l *load) judge(outages []outage) {
	l.t.Helper()
	logs := l.logs()
	for key, g := range logs {
		if n := g.exceeded(outageCapacity); n > 0 {
			l.t.Errorf("key %d: the window was exceeded by %d units", key, n)
		}
	}
	repeated := 0
	for i := range l.all {
		if a := &l.all[i]; a.lease != nil && a.repeated {
			repeated++
		}
	}
	l.t.Logf("%d calls, %d of them admitted when they were repeated", len(l.all), repeated)
	l.during(outages)
	l.denials(logs)
	l.ideal(outages)
}

// during checks the answers while TigerBeetle was away: each is unavailable, and in time.
func (l *load) during(outages []outage) {
	l.t.Helper()
	for i := range outages {
		o := &outages[i]
		unavailable, denied := 0, 0
		for _, a := range slices.Concat(l.all, l.settled) {
			inside := a.began.After(o.from) && a.done.Before(o.started)
			switch {
			case inside && a.unavailable:
				unavailable++
			case inside && a.denied:
				denied++ // a remembered denial; denials checks whether it was right
			}
		}
		if unavailable == 0 {
			l.t.Error("nothing was unavailable in an outage")
		}
		l.t.Logf("outage of %v: %d unavailable, %d denied from memory; answers %v after the start",
			o.started.Sub(o.from), unavailable, denied, o.over.Sub(o.started))
	}
	longest := time.Duration(0)
	for _, a := range slices.Concat(l.all, l.settled) {
		if a.unavailable {
			longest = max(longest, a.done.Sub(a.began))
		}
	}
	l.t.Logf("the longest call without an answer took %v", longest)
	if longest > storeTimeout+time.Second {
		l.t.Errorf("a call without an answer took %v, want about %v", longest, storeTimeout)
	}
}

// denials checks that each denial was right at some instant of its call, allowing for units that
// the cluster returns a little late.
func (l *load) denials(logs [outageKeys]log) {
	l.t.Helper()
	const tardy = 500 * time.Millisecond
	denied, early, wrong := 0, 0, 0
	for i := range l.all {
		a := &l.all[i]
		if !a.denied {
			continue
		}
		denied++
		if logs[a.key].occupied(a.began)+a.units <= outageCapacity {
			early++
			if logs[a.key].occupied(a.began.Add(-tardy))+a.units <= outageCapacity &&
				logs[a.key].occupied(a.done)+a.units <= outageCapacity {
				wrong++
			}
		}
	}
	l.t.Logf("%d denied, %d of them where units had just returned, %d without a reason",
		denied, early, wrong)
	if wrong > 0 || denied == 0 {
		l.t.Errorf("%d of %d denials without a reason", wrong, denied)
	}
}

// ideal checks that at least 99 % was admitted of what an exact window would have admitted of the
// same calls. It replays the calls that got an answer in order of time: an admitted one when it was
// charged and a denied one when it was asked. Calls without an answer and denials from memory
// during an outage are left out.
func (l *load) ideal(outages []outage) {
	l.t.Helper()
	var calls []inflightReserve
	for _, a := range l.all {
		away := slices.ContainsFunc(outages, func(o outage) bool {
			return a.denied && a.done.After(o.from) && a.began.Before(o.over)
		})
		if a.unavailable || away {
			continue
		}
		if a.lease != nil {
			a.began = a.lease.ReservedAt
		}
		calls = append(calls, a)
	}
	slices.SortStableFunc(calls, func(a, b inflightReserve) int { return a.began.Compare(b.began) })
	var best [outageKeys]log
	admitted, ideal := 0, 0
	for i := range calls {
		a := &calls[i]
		if a.lease != nil {
			admitted += a.units
		}
		if best[a.key].occupied(a.began)+a.units <= outageCapacity {
			ideal += a.units
			best[a.key] = append(best[a.key], use{a.began, a.units})
		}
	}
	l.t.Logf("%d units admitted, %d ideally: %.2f %%", admitted, ideal, 100*float64(admitted)/float64(ideal))
	if admitted*100 < ideal*99 {
		l.t.Errorf("admitted %d units, want at least 99 %% of %d", admitted, ideal)
	}
}
