package livetest

import (
	"cmp"
	"slices"
	"strings"
)

// Counts are the stored numbers of one limit on an item, in milli-units and milliseconds.
type Counts struct {
	Balance, Consumed          int64
	Capacity, Refill, PeriodMS int64 // of the whole bucket
}

// Item is a bucket item after the run.
type Item struct {
	Key        string // its PK
	RefilledMS int64
	Shards     int64
	Limits     map[string]Counts
}

// holds returns the balance of a limit on the item at an instant in Unix milliseconds.
func (i *Item) holds(limit string, ms int64) int64 {
	c := i.Limits[limit]
	if c.PeriodMS <= 0 {
		return c.Balance
	}
	due := max(0, ms-i.RefilledMS) * (c.Refill / i.Shards) / c.PeriodMS
	return max(c.Balance, min(c.Balance+due, c.Capacity/i.Shards))
}

// Account sums one limit of an entity over its items, in milli-units. All sums are exact.
type Account struct {
	// Made is the sum of the balances of new items. Refilled is the sum of all later credits, by
	// side.
	Made     int64
	Refilled map[string]int64
	// Left is the sum of the final balances. Consumed is the sum of the consumed units (tc).
	Left, Consumed int64
	// Off is the sum of Left and Consumed, less the sum of Made and Refilled. It is 0 if all units are
	// accounted for.
	Off int64
	// Writes counts the refills, by side. Broken counts those that do not begin at the rf at which
	// another one ended.
	Writes map[string]int
	Broken int
	// Lost is the gain that Python dropped: it credits the gain until its read of the item, and
	// sets rf to the time of its write.
	Lost int64
}

// Account sums the logged credits and the stored balances.
func (h *History) Account(records []Record, items []Item) *Account {
	a := &Account{Refilled: make(map[string]int64), Writes: make(map[string]int)}
	chains := make(map[string][]*Record)
	for i := range records {
		r := &records[i]
		if !strings.Contains(r.Item, h.itemSuffix()) {
			continue
		}
		switch r.Kind {
		case Made:
			a.Made += r.Credit[h.Limit]
			chains[r.Item] = append(chains[r.Item], r)
		case Write:
			a.Refilled[r.Side()] += r.Credit[h.Limit]
			if r.To != 0 {
				a.Writes[r.Side()]++
				chains[r.Item] = append(chains[r.Item], r)
			}
			if r.Side() == SidePython {
				a.Lost += r.lost(h.Limit)
			}
		}
	}
	a.Broken = broken(chains)
	for _, item := range items {
		if strings.Contains(item.Key, h.itemSuffix()) {
			a.Left += item.Limits[h.Limit].Balance
			a.Consumed += item.Limits[h.Limit].Consumed
		}
	}
	a.Off = a.Left + a.Consumed - a.Made - a.Refilled[SideGo] - a.Refilled[SidePython]
	return a
}

// lost returns the gain that a refill by Python dropped: the gain until its write, as far as the
// limit had room, less its credit.
func (r *Record) lost(limit string) int64 {
	s, ok := r.Share[limit]
	if !ok || r.To <= r.From {
		return 0
	}
	due := min((r.To-r.From)*s.Refill/s.PeriodMS, max(0, s.Capacity-s.Read))
	return max(0, due-max(0, r.Credit[limit]))
}

// broken counts the refills that do not begin at the rf at which the one before ended.
func broken(chains map[string][]*Record) int {
	n := 0
	for _, chain := range chains {
		slices.SortFunc(chain, func(a, b *Record) int {
			return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
		})
		for i := 1; i < len(chain); i++ {
			if chain[i].From != chain[i-1].To {
				n++
			}
		}
	}
	return n
}

// Ideal returns the most that the bucket could have admitted in the run, in milli-units: the
// capacity at the start and the gain. While a change of the rate is in progress, the lower rate
// counts.
func (h *History) Ideal() int64 {
	slower := func(a, b Limit) bool { return a.Refill*b.PeriodS < b.Refill*a.PeriodS }
	return h.eras[0].limit.Capacity*milli + h.gained(h.end()/1000, slower)
}

// Remainder returns the final balance of the items, at most the given amount for each: a call with
// a higher cost is rightly denied.
func (h *History) Remainder(items []Item, most int64) int64 {
	var sum int64
	for i := range items {
		if strings.Contains(items[i].Key, h.itemSuffix()) {
			sum += min(most, max(0, items[i].holds(h.Limit, h.end()/1000)))
		}
	}
	return sum
}

// end returns the end of the run, or the last admission if that is later.
func (h *History) end() int64 {
	end := h.world.EndUS
	if n := len(h.takes); n > 0 {
		end = max(end, h.takes[n-1].after)
	}
	return end
}
