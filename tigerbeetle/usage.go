//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

const (
	// usageEvery is how often usage is written by default.
	usageEvery = time.Minute
	// maxUsageSums bounds the sums that wait to be written. From half of it on they are written
	// without waiting for the minute to end.
	maxUsageSums = 1 << 17
	// maxUnknownUses bounds the calls of unknown outcome that are remembered, each for unknownFor
	// and until a write has looked it up. One that is not on the ledger then was not carried out.
	maxUnknownUses = 1 << 13
	unknownFor     = 10 * time.Minute
	// maxHeaders bounds the tries of one call that are kept.
	maxHeaders = 8
)

// usageKey is what use is summed by.
type usageKey struct {
	name usageName
	hour uint32 // Unix time / 3600
}

// usageSum is the use of one limit in one hour: the units, the number of changes, and how often a
// shadow limit was left in debt.
type usageSum struct{ units, events, overdrawn int64 }

// plus adds two sums. It reports whether the result fits.
func (s usageSum) plus(o usageSum) (usageSum, bool) {
	units := s.units + o.units
	fits := (units > s.units) == (o.units > 0)
	return usageSum{units, s.events + o.events, s.overdrawn + o.overdrawn}, fits
}

// usageChange is the change that one call makes to a sum.
type usageChange struct {
	usageKey
	usageSum
}

// usageLog sums what the calls of this server used until it is written, once a minute, as
// transfers (docs/adr/0039-usage-on-the-ledger.md). A call only adds to a map.
type usageLog struct {
	// every is how often sums are written; if it is not above zero, only by Close.
	every time.Duration
	// write writes the sums.
	write func()

	// mu guards the fields below. It is not locked during a call to the cluster.
	mu   sync.Mutex
	sums map[usageKey]usageSum
	// full are sums that would have grown beyond 64 bits.
	full []usageChange
	// unknown has the calls whose outcome is unknown, by the ID of their chain's header.
	unknown map[tb.Uint128]*unknownUse
	// timer runs write if armed. It is armed by the first change, so that an idle server writes
	// nothing. hurried is set if the timer was told not to wait.
	timer          *time.Timer
	armed, hurried bool
	// behind is set if unsent is not empty.
	behind bool
	// oldest is the time of the call since which something was counted that is not written.
	oldest time.Time
	// dropped is the number of changes that were not counted, from and to the times of the calls.
	dropped  *atomic.Int64
	from, to time.Time
	ended    bool
	cancel   context.CancelFunc // ends a write in progress

	// writing is held while sums are written. It guards unsent.
	writing sync.Mutex
	// unsent are the calls to the cluster that have no answer yet. They keep their transfers, so
	// that none is counted twice.
	unsent [][]tb.Transfer
}

// unknownUse is the use of a call whose outcome is unknown, and the headers of its chains. All
// have the same ID.
type unknownUse struct {
	headers []tb.Transfer
	changes []usageChange
	// decided is set once a header was found on the ledger. No later try of the call can have been
	// carried out, even if its answer is lost too.
	decided bool
	// at is the time of the last try. lookedUp is set once the headers were looked up after it.
	at       time.Time
	lookedUp bool
}

// matches reports whether a transfer is one of the headers. A reservation's header that another
// server made has another amount, because it has the time at which that server built it; each
// update's header has a random user_data_32. What is 0 in a post or void comes from its pending
// transfer.
func (u *unknownUse) matches(t *tb.Transfer) bool {
	return slices.ContainsFunc(u.headers, func(h tb.Transfer) bool {
		return t.Flags&^flagLinked == h.Flags&^flagLinked && matches(h.Code, t.Code) &&
			matches(h.Amount, t.Amount) && matches(h.UserData64, t.UserData64) &&
			matches(h.UserData32, t.UserData32)
	})
}

// matches reports whether a field is not set or equals the value.
func matches[T comparable](field, is T) bool {
	var none T
	return field == none || field == is
}

// hourOf returns the hour of an instant, at least 1, because a query cannot ask for 0.
func hourOf(now time.Time) uint32 {
	return uint32(min(max(now.Unix()/3600, 1), 1<<32-1))
}

// sentUse is a chain in flight whose use counts if the cluster carries it out.
type sentUse struct {
	log    *usageLog
	now    time.Time
	header *tb.Transfer
	// earlier is an earlier try of the call whose outcome is unknown. It is kept here meanwhile, so
	// that a write that finds the header does not count the call, which this chain then counts too.
	earlier *unknownUse
}

// begin begins to wait for the outcome of a chain of a call that was made at now.
func (u *usageLog) begin(now time.Time, header *tb.Transfer) sentUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	earlier := u.unknown[header.ID]
	delete(u.unknown, header.ID)
	return sentUse{u, now, header, earlier}
}

// end counts what the chain has used if the cluster carried it out, and keeps it to ask later if
// the outcome is unknown. Neither means that the chain failed; only then, an earlier try may have
// been carried out.
func (s *sentUse) end(created, unknown bool, uses func() []usageChange) {
	u := s.log
	switch {
	case created:
		u.add(s.now, uses())
	case unknown && (s.earlier == nil || !s.earlier.decided):
		use := &unknownUse{headers: []tb.Transfer{*s.header}, changes: uses(), at: s.now}
		if s.earlier != nil {
			earlier := s.earlier.headers
			use.headers = append(use.headers, earlier[:min(len(earlier), maxHeaders-1)]...)
		}
		u.addUnknown(s.now, use)
	case s.earlier != nil:
		s.earlier.at, s.earlier.lookedUp = s.now, false
		u.addUnknown(s.now, s.earlier)
	}
}

// add counts the changes of a call.
func (u *usageLog) add(now time.Time, changes []usageChange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.addLocked(now, changes)
}

// addLocked is like add, for callers that hold u.mu.
func (u *usageLog) addLocked(now time.Time, changes []usageChange) {
	for i := range changes {
		c := &changes[i]
		if c.name.entity == 0 || c.usageSum == (usageSum{}) {
			continue
		}
		old, known := u.sums[c.usageKey]
		if !known && len(u.sums)+len(u.full) >= maxUsageSums {
			u.drop(now)
			continue
		}
		sum, fits := old.plus(c.usageSum)
		if !fits {
			u.full, sum = append(u.full, usageChange{c.usageKey, old}), c.usageSum
		}
		u.sums[c.usageKey] = sum
		if u.oldest.IsZero() {
			u.oldest = now
		}
	}
	u.arm()
}

// drop counts a change that is not counted in usage. u.mu is held.
func (u *usageLog) drop(now time.Time) {
	if u.dropped.Add(1) == 1 || now.Before(u.from) {
		u.from = now
	}
	if now.After(u.to) {
		u.to = now
	}
}

// addUnknown keeps a call whose outcome is unknown until the ledger is asked for it.
func (u *usageLog) addUnknown(now time.Time, use *unknownUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(use.changes) == 0 {
		return
	}
	if len(u.unknown) >= maxUnknownUses {
		u.drop(now)
		return
	}
	if u.unknown == nil {
		u.unknown = make(map[tb.Uint128]*unknownUse)
	}
	u.unknown[use.headers[0].ID] = use
	if u.oldest.IsZero() {
		u.oldest = now
	}
	u.arm()
}

// arm starts the timer of the next write if there is something to write. u.mu is held.
func (u *usageLog) arm() {
	waiting := len(u.sums) + len(u.full)
	if u.every <= 0 || u.ended || waiting+len(u.unknown) == 0 && !u.behind {
		return
	}
	if !u.armed {
		u.armed, u.hurried = true, false
		u.timer = time.AfterFunc(u.every, u.write)
	}
	if waiting > maxUsageSums/2 && !u.hurried {
		u.hurried = true
		u.timer.Reset(0)
	}
}

// end stops the timer and a write in progress. Only Close writes after that.
func (u *usageLog) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	u.cancel()
	if u.timer != nil {
		u.timer.Stop()
	}
}

// startUsage prepares the counting of usage.
func (s *Store) startUsage(ctx context.Context) {
	u := &s.usage
	u.every, u.sums = s.options.WriteUsage, make(map[usageKey]usageSum)
	u.dropped = &s.counts.usageDropped
	if u.every == 0 {
		u.every = usageEvery
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	u.cancel, u.write = cancel, func() { s.usageDue(life) }
}

// uses returns what the reservation uses once its chain was carried out.
func (c *reserveOp) uses() []usageChange {
	changes := make([]usageChange, 0, len(c.takes))
	for i, take := range c.takes {
		units := c.out.Taken[i].Units
		if take.uncountable && take.key.kind != weir.Concurrency {
			units = 0
		}
		changes = take.appendUse(changes, hourOf(c.asked), units, c.out.Limits[i].Available < 0)
	}
	return changes
}

// uses returns what the update changes of the use once its chain was carried out.
func (c *updateOp) uses() []usageChange {
	changes := make([]usageChange, 0, len(c.changes))
	for i := range c.changes {
		x := &c.changes[i]
		used, overdrawn := x.used, false
		if x.unchanged {
			used = x.from
		}
		if x.Limit.Shadow && used > x.from {
			x.mu.Lock()
			overdrawn = x.availableKnown(c.s.clock.nowMS()) < 0
			x.mu.Unlock()
		}
		changes = x.appendUse(changes, hourOf(c.asked), used-x.from, overdrawn)
	}
	return changes
}

// appendUse appends the change of the take's use, unless it is none.
func (s *activeTake) appendUse(
	to []usageChange, hour uint32, units int64, overdrawn bool,
) []usageChange {
	if units == 0 {
		return to
	}
	c := usageChange{usageKey{s.usage, hour}, usageSum{units: units, events: 1}}
	if overdrawn && s.Limit.Shadow {
		c.overdrawn = 1
	}
	return append(to, c)
}
