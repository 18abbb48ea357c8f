package livetest

import (
	"cmp"
	"slices"
	"strings"
)

// Counts are what an item has of one limit, in milli-units and milliseconds.
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

// holds is what the item's share of a limit has at an instant in Unix milliseconds.
func (i *Item) holds(limit string, ms int64) int64 {
	c := i.Limits[limit]
	if c.PeriodMS <= 0 {
		return c.Balance
	}
	due := max(0, ms-i.RefilledMS) * (c.Refill / i.Shards) / c.PeriodMS
	return max(c.Balance, min(c.Balance+due, c.Capacity/i.Shards))
}

// Account adds up one limit of an entity over its items, in milli-units. All sums are exact.
type Account struct {
	// Made is what the items began with, Refilled all that was credited since, by side.
	Made     int64
	Refilled map[string]int64
	// Left is what the items hold, Consumed what they say was taken for good.
	Left, Consumed int64
	// Off is what is not accounted for: zero where Left and Consumed are what Made and Refilled
	// are together.
	Off int64
	// Writes are the refills, by side; Broken counts those that did not begin where another
	// ended.
	Writes map[string]int
	Broken int
	// Lost is the refill that Python dropped: it credits what was due when it read the item, and
	// says that everything is credited until it writes.
	Lost int64
}

// Account adds up what was logged and what is stored.
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

// lost is what a refill by Python left out: all that was due until it wrote, as far as there was
// room, less what it credited.
func (r *Record) lost(limit string) int64 {
	s, ok := r.Share[limit]
	if !ok || r.To <= r.From {
		return 0
	}
	due := min((r.To-r.From)*s.Refill/s.PeriodMS, max(0, s.Capacity-s.Read))
	return max(0, due-max(0, r.Credit[limit]))
}

// broken counts the refills that do not begin where the one before them ended.
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

// Ideal is what the bucket can have admitted from the start to the end, in milli-units: the
// capacity of the start and all that it regained. Where it is not certain since when another rate
// counts, it is the lower one.
func (h *History) Ideal() int64 {
	slower := func(a, b Limit) bool { return a.Refill*b.PeriodS < b.Refill*a.PeriodS }
	return h.eras[0].limit.Capacity*milli + h.gained(h.end()/1000, slower)
}

// Remainder is what the items hold at the end, but of each no more than so much: a call that
// costs more is rightly denied.
func (h *History) Remainder(items []Item, most int64) int64 {
	var sum int64
	for i := range items {
		if strings.Contains(items[i].Key, h.itemSuffix()) {
			sum += min(most, max(0, items[i].holds(h.Limit, h.end()/1000)))
		}
	}
	return sum
}

// end is the end of the run, or the last admission, if a call was so late.
func (h *History) end() int64 {
	end := h.world.EndUS
	if n := len(h.takes); n > 0 {
		end = max(end, h.takes[n-1].after)
	}
	return end
}
