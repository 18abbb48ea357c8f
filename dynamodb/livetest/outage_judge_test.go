package livetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// judge checks a run from the log of the callers, the items, and the requests that were under way
// when a server was killed. It returns what is wrong.
func (r *outageRun) judge() []string {
	r.t.Helper()
	var found []string
	for _, what := range slices.Sorted(maps.Keys(r.wrong.count)) {
		lease := r.wrong.first[what]
		found = append(found, fmt.Sprintf("%s: %s: %d times, first for%s%s", r.outage.name, what,
			r.wrong.count[what], r.recordOf(lease), r.servers.proxy.trace(lease)))
	}
	doubts, killed := r.servers.proxy.inDoubt()
	calls := r.calls()
	r.t.Logf("%s: %d kills, %d requests under way at them, %d requests in all; callers: %+v; Python: %+v",
		r.outage.name, r.kills, killed, len(r.servers.proxy.exchanges), *calls[SideGo], *calls[SidePython])
	if c := calls[SidePython]; c.Failed > 0 {
		found = append(found, r.outage.name+": Python: "+r.failure(SidePython))
	}
	leases := make(map[string]*Record)
	for i := range r.records {
		leases[r.records[i].Lease] = &r.records[i]
	}
	for _, h := range Histories(&r.world, r.records) {
		var doubt int64
		for lease, exchanges := range doubts {
			for i := range exchanges {
				doubt += inDoubtMilli(&exchanges[i], leases[lease], h)
			}
		}
		found = append(found, r.judgeLimit(h, doubt)...)
	}
	return found
}

// recordOf describes what a caller logged about a lease.
func (r *outageRun) recordOf(lease string) string {
	for i := range r.records {
		if one := &r.records[i]; one.Lease == lease {
			return fmt.Sprintf(" %s: %s at %d to %d, %s %v, adjusts %+v, end %+v", lease, one.Entity,
				one.Before, one.After, one.Verdict, one.Costs, one.Adjusts, one.Settled)
		}
	}
	return " " + lease
}

// inDoubtMilli returns the most that a request whose writes may have been made in part has charged,
// or has not given back, of a limit.
func inDoubtMilli(e *exchange, r *Record, h *History) int64 {
	if r == nil || r.Entity != h.Entity && h.world.Parents[r.Entity] != h.Entity {
		return 0
	}
	cost := r.Costs[h.Limit] * milli
	if e.verb == "reserve" || r.Verdict == Denied {
		return cost
	}
	least, most := cost, cost
	for _, c := range r.changes() {
		least, most = min(least, c.Totals[h.Limit]*milli), max(most, c.Totals[h.Limit]*milli)
	}
	return most - least
}

// judgeLimit checks one limit. doubt is the sum of what the requests in doubt may have charged, or
// not given back, in milli-units.
func (r *outageRun) judgeLimit(h *History, doubt int64) []string {
	r.t.Helper()
	var found []string
	name := fmt.Sprintf("%s: %s/%s", r.outage.name, h.Entity, h.Limit)
	wrong := func(format string, args ...any) {
		found = append(found, name+": "+fmt.Sprintf(format, args...))
	}
	if worst := h.Check(); worst.ExcessMilli > 0 {
		wrong("the callers were admitted %d milli-units too many in %d ms",
			worst.ExcessMilli, (worst.ToUS-worst.FromUS)/1000)
	}
	a := h.Account(r.records, r.items)
	if consumed := h.Consumed(); a.Consumed < consumed || a.Consumed > consumed+doubt {
		wrong("the items say that %d milli-units were consumed; the callers consumed %d, and %d are in doubt",
			a.Consumed, consumed, doubt)
	}
	before := h.Account(nil, r.before).Consumed
	settled, drained := r.settledMilli[h.Entity][h.Limit], r.drainedMilli(h)
	if got, want := a.Consumed-before, settled+drained; got != want {
		wrong("the items say that new servers consumed %d milli-units, the callers %d", got, want)
	}
	ideal, clipped, left := h.Ideal(), h.Clipped(), r.leftMilli(h)
	r.t.Logf("%s: the callers consumed %d of %d milli-units that the definition admits (%d ‰), "+
		"and %d by the items; left %d, in doubt %d, not regained because the bucket was full %d, "+
		"lost by Python %d", name, h.Consumed(), ideal, h.Consumed()*1000/ideal,
		a.Consumed, left, doubt, clipped, a.Lost)
	if more := h.Consumed() + left - ideal - h.rounding; more > 0 {
		wrong("%d milli-units more than the definition admits", more)
	}
	if less := ideal - clipped - h.Consumed() - left - doubt - a.Lost; less > ideal/100 {
		wrong("%d milli-units are lost, of %d that the definition admits", less, ideal)
	}
	return found
}

// drainedMilli returns what the callers were admitted after the fresh servers had settled all leases.
func (r *outageRun) drainedMilli(h *History) int64 {
	var sum int64
	for i := range r.records {
		one := &r.records[i]
		own := one.Entity == h.Entity || r.world.Parents[one.Entity] == h.Entity
		if own && one.Before > r.drainedFrom && one.Verdict == Admitted {
			sum += one.totals()[h.Limit] * milli
		}
	}
	return sum
}

// leftMilli returns the balance of a limit at the end. It is below zero if calls used more than they
// had reserved.
func (r *outageRun) leftMilli(h *History) int64 {
	var sum int64
	for i := range r.items {
		if strings.Contains(r.items[i].Key, h.itemSuffix()) {
			sum += r.items[i].holds(h.Limit, h.end()/1000)
		}
	}
	return sum
}
