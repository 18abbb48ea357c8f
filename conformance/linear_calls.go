package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// linearGroups is the number of groups of entities in a history. Calls touch one group each, so
// each group can be checked separately, which is much faster.
const linearGroups = 4

// The entities of a group, its limits by name, and its lease IDs.
const (
	linearEntities = 3 // two children, and their parent, which comes last
	linearLimits   = 4
	linearSlots    = 92
)

// linearNames are the limits: a bucket, slots, a budget and a window.
var linearNames = [linearLimits]string{"b", "c", "u", "w"}

// linearCapacity is the capacity of each entity's limits; 0 if it has no limit of the name.
var linearCapacity = [linearEntities][linearLimits]int64{
	{10, 6, 12, 9}, {10, 6, 12, 9}, {14, 8, 0, 0},
}

// linearUnits is an amount for each limit; -1 if the limit is not named.
type linearUnits [linearLimits]int8

// unnamed returns units that name no limit.
func unnamed() linearUnits { return linearUnits{-1, -1, -1, -1} }

// times returns a multiple of the amounts that are named.
func (u linearUnits) times(n int8) linearUnits {
	for i := range u {
		if u[i] >= 0 {
			u[i] *= n
		}
	}
	return u
}

// linearCall is a call of a client.
type linearCall struct {
	group  int
	verb   weir.Verb // empty for a status
	entity int8
	slot   int8
	seq    int16
	units  linearUnits
}

// linearAnswer is the answer to a linearCall.
type linearAnswer struct {
	code      weir.Code // empty if done
	denied    bool
	contended bool
	available [2 * linearLimits]int16 // of the limits judged, in order
}

// linearSetup returns a setup with the limits of every group. No units return by themselves during
// a history.
func linearSetup(w *linearWorld) Setup {
	d := &weir.Definitions{Entities: map[string]weir.EntityDefinition{}}
	for g := range linearGroups {
		for e := range int8(linearEntities) {
			var limits []weir.Limit
			for i, capacity := range linearCapacity[e] {
				if capacity > 0 {
					limits = append(limits, slowLimit(w.kinds[i], linearNames[i], capacity))
				}
			}
			def := weir.EntityDefinition{Limits: map[string][]weir.Limit{resource: limits}}
			if e < linearEntities-1 && w.cascade {
				def.Parent, def.Cascade = linearEntity(g, linearEntities-1), true
			}
			d.Entities[linearEntity(g, e)] = def
		}
	}
	// On a busy machine a call may take seconds; none should become unavailable because of that.
	o := limiter.Options{Observer: yielding{}, StoreTimeout: time.Minute}
	return Setup{Start: begin(), Definitions: d, Options: o}
}

func linearEntity(group int, e int8) string { return fmt.Sprintf("g%d-%d", group, e) }

// linearClient generates calls.
type linearClient struct {
	rng *rand.Rand
	// oneWay is set if an update must change all limits of a lease in one direction.
	oneWay bool
}

// next returns the client's i-th call of n. Clients that have made about as many calls meet at the
// same leases: they reserve new ones, and settle the ones before.
func (c *linearClient) next(i, of int) linearCall {
	const near = 10
	call := linearCall{
		group: c.rng.IntN(linearGroups), verb: c.verb(),
		slot: int8(i*(linearSlots-near)/of + c.rng.IntN(near/2)),
		seq:  int16(c.rng.IntN(6)) + 1, entity: int8(c.rng.IntN(linearEntities)),
	}
	switch call.verb {
	case weir.VerbReserve:
		call.slot += near / 2
		call.entity, call.units = c.content(&call)
	case weir.VerbAdjust, weir.VerbComplete:
		_, call.units = c.content(&call)
		if c.oneWay {
			call.units = call.units.times(int8(c.rng.IntN(3)))
			break
		}
		for j, n := range call.units {
			if n >= 0 {
				call.units[j] = int8(c.rng.IntN(int(n) + 2))
			}
			if n >= 0 && call.verb == weir.VerbComplete && c.rng.IntN(4) > 0 {
				call.units[j] = 0 // otherwise the limits would soon be full
			}
		}
	}
	return call
}

func (c *linearClient) verb() weir.Verb {
	verbs := []weir.Verb{
		weir.VerbReserve, weir.VerbReserve, weir.VerbReserve, weir.VerbReserve, weir.VerbReserve,
		weir.VerbAdjust, weir.VerbAdjust, weir.VerbComplete, weir.VerbComplete,
		weir.VerbCancel, weir.VerbCancel, weir.VerbCancel, weir.VerbExtend, "",
	}
	return verbs[c.rng.IntN(len(verbs))]
}

// content returns what a lease is reserved for. It mostly depends on the lease alone, so that calls
// repeat one another, and sometimes differs.
func (c *linearClient) content(call *linearCall) (entity int8, units linearUnits) {
	r := rand.New(rand.NewPCG(uint64(call.slot), uint64(call.group)))
	other := c.rng.IntN(10) == 0
	if other && !c.oneWay {
		r = c.rng
	}
	entity, units = int8(r.IntN(linearEntities)), unnamed()
	if other && c.oneWay {
		entity = int8(c.rng.IntN(linearEntities))
	}
	for j := range units {
		if r.IntN(2) == 0 && linearCapacity[entity][j] > 0 {
			units[j] = int8(r.IntN(4))
		}
	}
	return entity, units
}

// costs returns the units that are named.
func (u linearUnits) costs() weir.Costs {
	c := weir.Costs{}
	for i, n := range u {
		if n >= 0 {
			c[linearNames[i]] = int64(n)
		}
	}
	return c
}

// play makes a call and returns the answer, and the statuses in it.
func (c *linearCall) play(
	ctx context.Context, s weir.Service, id weir.LeaseID,
) (a linearAnswer, statuses []weir.LimitStatus) {
	entity := linearEntity(c.group, c.entity)
	var err error
	switch c.verb {
	case "":
		// A store may read the ancestors at another instant. They have statuses of their own.
		statuses, err = s.Status(ctx, entity, resource)
		statuses = slices.DeleteFunc(statuses, func(s weir.LimitStatus) bool {
			return s.Entity != entity
		})
	case weir.VerbReserve:
		var l *weir.Lease
		if l, err = s.Reserve(ctx, with(id, ask(entity, c.units.costs()))); err == nil {
			statuses = l.Limits
		}
	case weir.VerbAdjust:
		_, err = s.Adjust(ctx, id, int64(c.seq), []weir.Costs{c.units.costs()})
	case weir.VerbComplete:
		_, err = s.Complete(ctx, id, []weir.Costs{c.units.costs()})
	case weir.VerbCancel:
		_, err = s.Cancel(ctx, id)
	default:
		_, err = s.Extend(ctx, id)
	}
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		a.denied, a.contended = !denied.Contended, denied.Contended
		statuses = denied.Limits
	} else if e, ok := errors.AsType[*weir.Error](err); ok {
		a.code = e.Code
	} else if err != nil {
		a.code = weir.Code(err.Error())
	}
	a.note(statuses)
	return a, statuses
}

func (a *linearAnswer) note(statuses []weir.LimitStatus) {
	if len(statuses) > len(a.available) {
		a.code = weir.Code(fmt.Sprintf("%d statuses", len(statuses)))
		return
	}
	for i := range statuses {
		a.available[i] = int16(statuses[i].Available)
	}
}

func (c *linearCall) String() string {
	who := fmt.Sprintf("group %d, lease %d", c.group, c.slot)
	switch c.verb {
	case "":
		return fmt.Sprintf("status of %s", linearEntity(c.group, c.entity))
	case weir.VerbReserve:
		return fmt.Sprintf("reserve %v of %s, %s", c.units.costs(), linearEntity(c.group, c.entity), who)
	case weir.VerbAdjust:
		return fmt.Sprintf("adjust %d to %v, %s", c.seq, c.units.costs(), who)
	}
	return fmt.Sprintf("%s %v, %s", c.verb, c.units.costs(), who)
}

func (a *linearAnswer) String() string {
	switch {
	case a.code != "":
		return string(a.code)
	case a.contended:
		return "contended"
	case a.denied:
		return fmt.Sprintf("denied with %v", a.available)
	}
	return fmt.Sprintf("done with %v", a.available)
}

// outcome returns a name for an answer, for counting.
func (c *linearCall) outcome(a *linearAnswer) string {
	verb, what := string(c.verb), "done"
	if verb == "" {
		verb = "status"
	}
	switch {
	case a.contended:
		what = "contended"
	case a.denied:
		what = "denied"
	case a.code != "":
		what = string(a.code)
	}
	return verb + ": " + what
}
