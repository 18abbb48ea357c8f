package livetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// World is what was so before the processes began, and what does not change.
type World struct {
	Resource string `json:"resource"`
	// Limits are those of each entity.
	Limits map[string]map[string]Limit `json:"limits"`
	// Parents are the entities that are charged too.
	Parents map[string]string `json:"parents,omitempty"`
	// StartUS and EndUS are the run, in Unix microseconds. Buckets are full at the start.
	StartUS int64 `json:"start_us"`
	EndUS   int64 `json:"end_us"`
}

// effect is a change of what a bucket stands for. When it took effect is only known to lie
// between two instants, in Unix microseconds.
type effect struct {
	before, after int64
	milli         int64 // always above zero
}

// forever is later than everything.
const forever = int64(1) << 60

// era is a time in which a limit has one definition, beginning between two instants: the higher
// of two rates counts in between.
type era struct {
	from, sure int64 // Unix microseconds
	limit      Limit
}

// History is all that happened to one limit of one entity.
type History struct {
	// Entity and Limit say which limit it is.
	Entity, Limit string

	world *World
	eras  []era // in order; the first is that of the start
	takes []effect
	more  []effect // charged without being judged
	less  []effect // given back, and room that was made in other ways
	// tc is what all admitted calls together stand for in the end, in milli-units.
	// under and over are by how much it may be less or more where an outcome is unknown.
	tc, under, over int64
	sides           map[string]*Side
	doubled         []doubling
	rounding        int64 // milli-units that rounding may have made
}

// Side is what one library's processes were told of one limit.
type Side struct {
	Admitted, Denied, Failed int
	// Units are those that the admitted calls stand for in the end.
	Units int64
}

// milli is what a unit is in stored balances.
const milli = 1000

// Histories are what the records say about each limit, in the order of entities and limits.
func Histories(w *World, records []Record) []*History {
	var all []*History
	byEntity := make(map[string][]*History)
	for _, entity := range slices.Sorted(maps.Keys(w.Limits)) {
		for _, name := range slices.Sorted(maps.Keys(w.Limits[entity])) {
			h := &History{
				Entity: entity, Limit: name, world: w, sides: make(map[string]*Side),
				eras: []era{{-forever, -forever, w.Limits[entity][name]}},
			}
			all, byEntity[entity] = append(all, h), append(byEntity[entity], h)
		}
	}
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Before, b.Before) })
	for i := range records {
		r := &records[i]
		for _, entity := range []string{r.Entity, w.Parents[r.Entity]} {
			for _, h := range byEntity[entity] {
				h.add(r, entity == r.Entity)
			}
		}
	}
	for _, h := range all {
		h.limitRoom(records)
		h.rounding = rounding(records, h)
		slices.SortFunc(h.takes, func(a, b effect) int { return cmp.Compare(a.after, b.after) })
		slices.SortFunc(h.more, func(a, b effect) int { return cmp.Compare(a.after, b.after) })
		slices.SortFunc(h.less, func(a, b effect) int { return cmp.Compare(a.before, b.before) })
	}
	return all
}

// add puts a record into a history, in the order of their beginnings. What an action does, it
// does to its own entity alone.
func (h *History) add(r *Record, own bool) {
	switch {
	case r.Kind == Call:
		h.call(r)
	case r.Kind == Changed && own:
		h.change(r)
	case r.Kind == Doubled && own:
		h.double(r)
	}
}

func (h *History) call(r *Record) {
	cost, asked := r.Costs[h.Limit]
	if !asked {
		return
	}
	side := h.sides[r.Side()]
	if side == nil {
		side = &Side{}
		h.sides[r.Side()] = side
	}
	switch r.Verdict {
	case Denied:
		side.Denied++
		return
	case Failed:
		side.Failed++
		h.over += cost * milli
		return
	}
	side.Admitted++
	side.Units += r.totals()[h.Limit]
	h.tc += r.totals()[h.Limit] * milli
	if cost > 0 {
		h.takes = append(h.takes, effect{r.Before, r.After, cost * milli})
	}
	if r.Settled == nil {
		return
	}
	e := effect{r.Settled.Before, r.Settled.After, (r.Settled.Totals[h.Limit] - cost) * milli}
	unknown := r.Settled.Err != ""
	if unknown {
		e.after = forever
		h.over += max(0, e.milli)
		h.under += max(0, -e.milli)
	}
	switch {
	case e.milli > 0 && !unknown:
		h.more = append(h.more, e)
	case e.milli < 0:
		e.milli = -e.milli
		h.less = append(h.less, e)
	}
}

// change begins another era. A refill is credited late: the new rate may count from the last
// refill before the change. A raised capacity may come with what it was raised by.
func (h *History) change(r *Record) {
	limit, ok := r.Set[h.Limit]
	if !ok {
		return
	}
	from := r.Before
	if r.RefilledMS > 0 {
		from = min(from, r.RefilledMS*1000)
	}
	was := h.eras[len(h.eras)-1].limit
	h.eras = append(h.eras, era{from, r.After, limit})
	if raised := limit.Capacity - was.Capacity; raised > 0 {
		h.less = append(h.less, effect{from, r.After, raised * milli})
	}
}

// rounding is how much the refills of a bucket may have rounded up together: one that begins
// where the other library ended is less than a milli-unit above the exact one.
func rounding(records []Record, h *History) int64 {
	n := int64(4)
	for i := range records {
		if r := &records[i]; r.Kind == Write && r.From != 0 && r.Side() == SidePython &&
			strings.Contains(r.Item, h.itemSuffix()) {
			n++
		}
	}
	return n
}

// Sides are what each side was told.
func (h *History) Sides() map[string]*Side { return h.sides }

// Consumed is what all admitted calls together stand for in the end, in milli-units: what the
// items must have as tc.
func (h *History) Consumed() int64 { return h.tc }

// Unknown is by how much the items may have consumed less or more than [History.Consumed], because
// a caller was not told what became of a call.
func (h *History) Unknown() (less, more int64) { return h.under, h.over }
