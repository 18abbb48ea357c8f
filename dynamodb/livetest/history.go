package livetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// World is the configuration before the run, and everything that does not change in it.
type World struct {
	Resource string `json:"resource"`
	// Limits are the limits of each entity.
	Limits map[string]map[string]Limit `json:"limits"`
	// Parents are the entities that are charged too, by child.
	Parents map[string]string `json:"parents,omitempty"`
	// StartUS and EndUS bound the run, in Unix microseconds. Buckets are full at the start.
	StartUS int64 `json:"start_us"`
	EndUS   int64 `json:"end_us"`
	// RefundUS is the longest time from an answer to its refund, in microseconds. It is above zero
	// if a request can reach two servers, because one of them may answer before the other has
	// written the refund.
	RefundUS int64 `json:"refund_us,omitempty"`
}

// effect is a take, a refund or another change of a bucket's use. It took effect at an unknown
// instant between before and after, in Unix microseconds.
type effect struct {
	before, after int64
	milli         int64 // always above zero
}

// forever is later than every instant.
const forever = int64(1) << 60

// definitionSpan is a time in which a limit has one definition. It begins at an unknown instant
// between from and sure.
type definitionSpan struct {
	from, sure int64 // Unix microseconds
	limit      Limit
}

// History is everything that happened to one limit of one entity.
type History struct {
	// Entity and Limit identify the limit.
	Entity, Limit string

	world *World
	eras  []definitionSpan // in order; the first begins with the run
	takes []effect
	more  []effect // charges that are not judged
	less  []effect // refunds, and room that was created in other ways
	// tc is the number of units that all admitted calls consumed, in milli-units. It may be under
	// less or over more because of calls with an unknown outcome.
	tc, under, over int64
	sides           map[string]*Side
	doubled         []doubling
	rounding        int64 // the most that rounding may have added, in milli-units
}

// Side counts the answers about one limit that the processes of one library got.
type Side struct {
	Admitted, Denied, Failed int
	// Units is the number of units that the admitted calls consumed.
	Units int64
}

// milli is the number of milli-units in a unit.
const milli = 1000

// Histories returns a history for each limit in the records, in the order of entities and limits.
func Histories(w *World, records []Record) []*History {
	var all []*History
	byEntity := make(map[string][]*History)
	for _, entity := range slices.Sorted(maps.Keys(w.Limits)) {
		for _, name := range slices.Sorted(maps.Keys(w.Limits[entity])) {
			h := &History{
				Entity: entity, Limit: name, world: w, sides: make(map[string]*Side),
				eras: []definitionSpan{{-forever, -forever, w.Limits[entity][name]}},
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

// add adds a record to a history; records are added in the order of their beginnings. own is false
// for the parent of the record's entity, which actions do not change.
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
	before := cost
	for _, c := range r.changes() {
		h.changed(&c, before)
		if c.Err == "" {
			before = c.Totals[h.Limit]
		}
	}
}

// changed adds the effect of an adjust or of the end of a call that stood for a number of units.
func (h *History) changed(c *Settled, before int64) {
	e := effect{c.Before, c.After, (c.Totals[h.Limit] - before) * milli}
	unknown := c.Err != ""
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
		e.after += h.world.RefundUS
		h.less = append(h.less, e)
	}
}

// change begins another era. Because refills credit late, the new rate may count from the last
// refill before the change. A raised capacity may come with the same number of units.
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
	h.eras = append(h.eras, definitionSpan{from, r.After, limit})
	if raised := limit.Capacity - was.Capacity; raised > 0 {
		h.less = append(h.less, effect{from, r.After, raised * milli})
	}
}

// rounding returns the most that the refills of a bucket may have rounded up together. A refill
// that begins where the other library's ended is less than a milli-unit above the exact one.
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

// Sides returns the counts of each side.
func (h *History) Sides() map[string]*Side { return h.sides }

// Consumed returns the units that all admitted calls consumed, in milli-units. The sum of tc on the
// items must equal it.
func (h *History) Consumed() int64 { return h.tc }

// Unknown returns the amounts by which the items may have consumed less or more than
// [History.Consumed], because of calls with an unknown outcome.
func (h *History) Unknown() (less, more int64) { return h.under, h.over }
