package livetest

import "math/rand/v2"

// simulation is a bucket that decides one call after another, and processes that know each decision
// to lie between two readings of their clocks. Its faults are those that a checker must find.
type simulation struct {
	capacity, refill int64 // units, and units a second
	seconds          int64
	perSecond        int
	cost             int64
	// jitterUS is the longest time between a reading of the clock and the decision.
	jitterUS int64
	// changed is the limit for the second half; nil if it stays.
	changed *Limit
	// idleFrom and idleTo bound a pause without calls, in seconds.
	idleFrom, idleTo int64
	// doubleAt is the time of a doubling of the shards, in seconds; 0 for none.
	doubleAt int64

	faultCapacity int64 // excess capacity, in milli-units
	faultRefill   int64 // excess refill per second, in milli-units
	faultRefund   bool  // refunds count twice
	faultIdle     bool  // the gain is credited late, above the capacity
	faultForget   int   // one of n charges is not counted; 0 for none
	faultMore     bool  // later charges are not counted
	faultChange   bool  // the change is ignored
	faultOver     bool  // a refund lifts the balance above the capacity
}

const (
	second = int64(1_000_000)
	origin = 1_700_000_000 * second
)

// bucketState is the exact bucket, in milli-units.
type bucketState struct {
	balance, capacity, refill int64
	at                        int64 // Unix ms
	owed                      int64 // to be credited later by a fault
}

func (b *bucketState) advance(us int64, late bool) {
	ms := us / 1000
	gain := (ms - b.at) * b.refill / 1000
	b.at = ms
	if room := max(0, b.capacity-b.balance); gain > room {
		if late {
			b.owed += gain - room
		}
		gain = room
	}
	b.balance += gain
	if late && b.balance < b.capacity/2 {
		b.balance, b.owed = b.balance+b.owed, 0
	}
}

// due is an event at a later time.
type due struct {
	at    int64
	milli int64
}

// run runs the simulation and returns the records of the processes.
func (s *simulation) run(rng *rand.Rand) (*World, []Record) {
	w := &World{
		Resource: "r", StartUS: origin, EndUS: origin + s.seconds*second,
		Limits: map[string]map[string]Limit{"e": {"l": {s.capacity, s.refill, 1}}},
	}
	b := &bucketState{
		balance: s.capacity*milli + s.faultCapacity, capacity: s.capacity*milli + s.faultCapacity,
		refill: s.refill*milli + s.faultRefill, at: origin / 1000,
	}
	var records []Record
	var later []due
	changed, doubled := false, false
	step := second / int64(s.perSecond)
	for i := range s.seconds * int64(s.perSecond) {
		now := origin + i*step + rng.Int64N(step)
		later = s.settle(b, later, now)
		b.advance(now, s.faultIdle)
		if s.changed != nil && !changed && now >= origin+s.seconds*second/2 {
			changed = true
			records = append(records, s.change(rng, b, now))
		}
		if s.doubleAt > 0 && !doubled && now >= origin+s.doubleAt*second {
			doubled = true
			b.balance += b.capacity / 2 // the new shards begin full
			records = append(records, Record{
				Kind: Doubled, Process: "python-0", Entity: "e", Shards: []int{1, 2},
				Before: now - 1, After: now + 1,
			})
		}
		if i*step >= s.idleFrom*second && i*step < s.idleTo*second {
			continue
		}
		r := s.decide(rng, b, now, &later)
		records = append(records, *r)
	}
	s.settle(b, later, forever)
	return w, records
}

func (s *simulation) seen(rng *rand.Rand, now int64) (before, after int64) {
	return now - rng.Int64N(s.jitterUS+1), now + rng.Int64N(s.jitterUS+1)
}

func (s *simulation) decide(rng *rand.Rand, b *bucketState, now int64, later *[]due) *Record {
	r := &Record{
		Kind: Call, Process: []string{"go-0", "python-0"}[rng.IntN(2)], Entity: "e", Resource: "r",
		Costs: map[string]int64{"l": s.cost}, Verdict: Denied,
	}
	r.Before, r.After = s.seen(rng, now)
	if b.balance < s.cost*milli {
		return r
	}
	r.Verdict = Admitted
	if s.faultForget == 0 || rng.IntN(s.faultForget) > 0 {
		b.balance -= s.cost * milli
	}
	total := s.cost
	switch rng.IntN(10) {
	case 0:
		total += s.cost / 2
	case 1:
		total -= s.cost / 2
	case 2:
		total = 0
	default:
		return r
	}
	r.Settled = &Settled{Totals: map[string]int64{"l": total}}
	at := now + 20_000 + rng.Int64N(200_000)
	r.Settled.Before, r.Settled.After = s.seen(rng, at)
	r.Settled.Before = max(r.Settled.Before, r.After)
	*later = append(*later, due{at: max(at, r.Settled.Before), milli: (total - s.cost) * milli})
	return r
}

// settle makes the events that are due.
func (s *simulation) settle(b *bucketState, later []due, now int64) []due {
	rest := later[:0]
	for _, d := range later {
		if d.at > now {
			rest = append(rest, d)
			continue
		}
		if now != forever {
			b.advance(max(d.at, b.at*1000), s.faultIdle)
		}
		switch {
		case d.milli > 0 && !s.faultMore:
			b.balance -= d.milli
		case d.milli < 0:
			if s.faultRefund {
				d.milli *= 2
			}
			b.balance -= d.milli
			if !s.faultOver {
				b.balance = min(b.balance, max(b.capacity, b.balance+d.milli))
			}
		}
	}
	return rest
}

func (s *simulation) change(rng *rand.Rand, b *bucketState, now int64) Record {
	r := Record{Kind: Changed, Process: "go-0", Entity: "e", Set: map[string]Limit{"l": *s.changed}}
	r.Before, r.After = s.seen(rng, now)
	r.RefilledMS = r.Before/1000 - 5
	if !s.faultChange {
		b.capacity, b.refill = s.changed.Capacity*milli, s.changed.Refill*milli
		b.balance = min(b.balance, b.capacity)
	}
	return r
}
