package conformance

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// The specification of what calls mean that are made at one instant: nothing returns by itself, so
// each limit is a number of units in use. It knows a group of three entities, two children that
// cascade to one parent, and the leases among them. It shares nothing with the limiter or the
// model. A store that has fewer kinds has buckets in their place, one that cannot charge several
// entities at one instant has no cascade.

// The entities of a group, and the limits by name, in the order of judging.
const (
	linearEntities = 3 // two children and their parent, which comes last
	linearLimits   = 4
	linearSlots    = 92 // lease IDs of a group
)

// linearNames are the limits: a bucket, slots, a budget and a window.
var linearNames = [linearLimits]string{"b", "c", "u", "w"}

// linearWorld is what the worlds of a history have.
type linearWorld struct {
	kinds   [linearLimits]weir.Kind
	cascade bool
	// contends is true where a call may be denied as contended. It is as if it had not been made.
	contends bool
	// estimates is true where the answer to a reservation may have what was available at another
	// instant than its own.
	estimates bool
	// servers is true where several servers answer, each of which remembers leases.
	servers bool
}

func linearWorldOf(h *Harness) linearWorld {
	w := linearWorld{
		kinds:   [linearLimits]weir.Kind{weir.Bucket, weir.Concurrency, weir.Budget, weir.Window},
		cascade: h.Traits.CascadeDepth > 0 && !h.Compensates, contends: h.Contends,
		estimates: h.Estimates, servers: h.Servers,
	}
	for i, k := range w.kinds {
		if !slices.Contains(h.Traits.Kinds, k) {
			w.kinds[i] = weir.Bucket
		}
	}
	return w
}

// slots is true where the limit c is one of concurrency.
func (w *linearWorld) slots() bool { return w.kinds[slotLimit] == weir.Concurrency }

// held is what a limit of those that a call names asks for: a call occupies a slot whether or not
// it says so.
func (w *linearWorld) held(asked linearUnits) linearUnits {
	if w.slots() && asked[slotLimit] < 0 {
		asked[slotLimit] = 1
	}
	return asked
}

// linearCapacity is what each entity's limits hold; 0 where it has none of the name.
var linearCapacity = [linearEntities][linearLimits]int16{
	{10, 6, 12, 9}, {10, 6, 12, 9}, {14, 8, 0, 0},
}

const slotLimit = 1 // the position of c

// units is an amount for each limit; -1 where it is not named.
type linearUnits [linearLimits]int8

// unnamed names nothing.
func unnamed() linearUnits { return linearUnits{-1, -1, -1, -1} }

// ledger is the state of a group. It is a value, so a step makes a copy.
type ledger struct {
	world  linearWorld
	used   [linearEntities][linearLimits]int16
	leases [linearSlots]linearLease
}

// linearLease is one lease of a group.
type linearLease struct {
	state   linearState
	voided  bool // cancelled before it was reserved
	entity  int8
	content linearUnits // as asked
	stands  linearUnits // what it stands for
	actuals linearUnits // of its complete
	seq     int16
}

type linearState int8

const (
	linearUnknown linearState = iota
	linearLive
	linearCompleted
	linearCancelled
)

// linearCall is what a client asks.
type linearCall struct {
	group  int
	verb   weir.Verb // empty: a status
	entity int8
	slot   int8
	seq    int16
	units  linearUnits
}

// linearAnswer is what it hears.
type linearAnswer struct {
	code      weir.Code // empty: done
	denied    bool
	contended bool
	available [2 * linearLimits]int16 // of the limits judged, in order
}

// step says whether an answer is the right one to a call, and what comes after it.
func (l ledger) step(c *linearCall, a *linearAnswer) (bool, ledger) {
	if c.verb == "" {
		return a.code == "" && a.available == l.status(c.entity), l
	}
	lease := &l.leases[c.slot]
	if c.verb == weir.VerbReserve {
		ok := l.reserve(lease, c, a)
		return ok, l
	}
	if code := lease.refuses(c); code != "" {
		if lease.state == linearUnknown && c.verb == weir.VerbCancel {
			lease.voided = true
		}
		// A server that has carried an adjust out need not have heard that the lease is over since.
		repeats := l.world.servers && c.verb == weir.VerbAdjust && c.seq <= lease.seq
		return a.code == code || a.code == "" && repeats, l
	}
	switch {
	case lease.state != linearLive: // the same settlement again
		return a.code == "", l
	case c.verb == weir.VerbExtend, c.verb == weir.VerbAdjust && c.seq <= lease.seq:
		return a.code == "", l
	case c.verb == weir.VerbCancel:
		l.stand(lease, linearUnits{})
		lease.state = linearCancelled
		return a.code == "", l
	}
	if !lease.mayName(c.units, l.world.slots()) {
		return a.code == weir.Invalid, l
	}
	to := lease.stands
	for i, n := range c.units {
		if n >= 0 {
			to[i] = n
		}
	}
	if c.verb == weir.VerbAdjust {
		lease.seq = c.seq
	} else {
		lease.state, lease.actuals = linearCompleted, c.units
		if l.world.slots() {
			to[slotLimit] = min(to[slotLimit], 0) // slots return
		}
	}
	l.stand(lease, to)
	return a.code == "", l
}

// refuses is the table of section 6, for verbs but reserve.
func (e *linearLease) refuses(c *linearCall) weir.Code {
	complete, cancel := c.verb == weir.VerbComplete, c.verb == weir.VerbCancel
	switch {
	case e.state == linearUnknown:
		return weir.UnknownLease
	case e.state == linearLive:
		return ""
	case e.state == linearCompleted && complete && c.units == e.actuals,
		e.state == linearCancelled && cancel:
		return ""
	case complete, cancel:
		return weir.Conflict
	}
	return weir.Ended
}

// mayName refuses what was not reserved, and more slots than the lease stands for.
func (e *linearLease) mayName(named linearUnits, slots bool) bool {
	for i, n := range named {
		if n >= 0 && e.stands[i] < 0 || slots && i == slotLimit && n > e.stands[i] {
			return false
		}
	}
	return true
}

// reserve judges and takes, or answers for a lease that is known.
func (l *ledger) reserve(lease *linearLease, c *linearCall, a *linearAnswer) bool {
	if lease.voided {
		return a.code == weir.Ended
	}
	switch {
	case a.contended:
		return l.world.contends && lease.state == linearUnknown
	case lease.state > linearLive:
		return a.code == weir.Ended
	case lease.state == linearLive && (lease.entity != c.entity || lease.content != c.units):
		return a.code == weir.Conflict
	case lease.state == linearLive:
		// That it repeats the first answer is seen by comparing all of them afterwards.
		return a.code == "" && !a.denied
	}
	asked := l.world.held(c.units)
	available, fits := l.judge(c.entity, asked)
	if a.denied || !fits {
		return a.code == "" && a.denied && !fits && l.tells(c.entity, asked, a, available)
	}
	*lease = linearLease{state: linearLive, entity: c.entity, content: c.units,
		stands: unnamed(), actuals: unnamed()}
	for i, n := range asked {
		if n >= 0 {
			lease.stands[i] = 0
		}
	}
	l.stand(lease, asked)
	after, _ := l.judge(c.entity, asked)
	return a.code == "" && !a.denied && l.tells(c.entity, asked, a, after)
}

// tells is true where an answer has what is available. An estimate may be of another instant, when
// other calls had taken or settled: but then too a limit had at most its capacity, less what the
// answer is for, and a denial names a limit that had not enough.
func (l *ledger) tells(
	entity int8, asked linearUnits, a *linearAnswer, available [2 * linearLimits]int16,
) bool {
	if !l.world.estimates {
		return a.available == available
	}
	n, exceeded := 0, false
	for _, e := range l.world.reached(entity) {
		for i, units := range asked {
			if units < 0 || linearCapacity[e][i] == 0 {
				continue
			}
			most := linearCapacity[e][i]
			if !a.denied {
				most -= int16(units)
			}
			if a.available[n] > most {
				return false
			}
			exceeded = exceeded || a.available[n] < int16(units)
			n++
		}
	}
	return exceeded || !a.denied
}

// reached are the entities that a charge falls on.
func (w *linearWorld) reached(entity int8) []int8 {
	const parent = linearEntities - 1
	if entity == parent || !w.cascade {
		return []int8{entity}
	}
	return []int8{entity, parent}
}

// judge lists what the limits named have available, and says whether the costs fit.
func (l *ledger) judge(
	entity int8,
	asked linearUnits,
) (available [2 * linearLimits]int16, fits bool) {
	n := 0
	fits = true
	for _, e := range l.world.reached(entity) {
		for i, units := range asked {
			if units < 0 || linearCapacity[e][i] == 0 {
				continue
			}
			available[n] = linearCapacity[e][i] - l.used[e][i]
			fits = fits && available[n] >= int16(units)
			n++
		}
	}
	return available, fits
}

// stand makes a lease stand for so many units on the limits that it has.
func (l *ledger) stand(lease *linearLease, to linearUnits) {
	for i, n := range to {
		if n < 0 || lease.stands[i] < 0 {
			continue
		}
		for _, e := range l.world.reached(lease.entity) {
			if linearCapacity[e][i] > 0 {
				l.used[e][i] += int16(n) - int16(lease.stands[i])
			}
		}
		lease.stands[i] = n
	}
}

// status is what an entity's own limits have available.
func (l *ledger) status(entity int8) (available [2 * linearLimits]int16) {
	n := 0
	for i, capacity := range linearCapacity[entity] {
		if capacity > 0 {
			available[n] = capacity - l.used[entity][i]
			n++
		}
	}
	return available
}
