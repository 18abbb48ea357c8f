package conformance

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// Profile says what a generated script may do.
type Profile struct {
	// Traits are the store's: its kinds, its depth, and whether it has shadow limits.
	Traits weir.Traits
	// NoSkew is true where time may not step back. Default: it may.
	NoSkew bool
	// Calendar may be shared, since it only remembers. Default: a new one.
	Calendar *model.Calendar
	// Leeway is the store's. Default: none.
	Leeway Leeway
}

// Generate makes a script of n operations; the same for the same seed. It runs the model beside, to
// know which leases are live, ended or expired, so that every verb meets every state of a lease
// often.
func Generate(seed uint64, n int, p Profile) (*Script, error) {
	if p.Calendar == nil {
		p.Calendar = model.NewCalendar()
	}
	g := &generator{rng: rand.New(rand.NewPCG(seed, 0)), profile: p, gone: make(map[model.Key]int64)}
	g.script = g.world()
	g.inForce = g.script.Sets[0].Definitions
	g.moves = slices.Concat(g.reserveMoves(), g.settleMoves(), g.otherMoves())
	var err error
	g.model, err = OpenModel(g.script.Setup(), p.Traits.EntitySlash, p.Calendar, nil)
	if err != nil {
		return nil, err
	}
	for len(g.script.Ops) < n {
		g.move()
	}
	g.script.Ops = g.script.Ops[:n]
	return g.script, nil
}

// generator makes up a script while it runs it in the model.
type generator struct {
	rng     *rand.Rand
	profile Profile
	script  *Script
	model   ModelWorld
	moves   []move
	leases  []*tracked
	denied  []Op          // reserves that were denied; their IDs may be used again
	wait    time.Duration // of the last one
	inForce *weir.Definitions
	gone    map[model.Key]int64 // when buckets that were removed had been used last, in Unix milliseconds
	brings  []weir.Limit        // where nothing is configured, if always the same
}

// tracked is what the generator knows of a lease that it made.
type tracked struct {
	reserve Op
	limits  []weir.LimitStatus
	expires time.Time
	holds   time.Time
	adjust  Op // the last one that was applied
	end     Op // the complete
	ended   time.Time
}

// trackedMost is how many leases are worth remembering.
const trackedMost = 64

// move is something that a generator may do.
type move struct {
	weight int
	do     func()
}

// move does one thing; the weights see to it that all of them are frequent.
func (g *generator) move() {
	total := 0
	for _, m := range g.moves {
		total += m.weight
	}
	n := g.rng.IntN(total)
	for _, m := range g.moves {
		if n -= m.weight; n < 0 {
			m.do()
			return
		}
	}
}

// do runs an operation in the model and appends it to the script. Where the memory is small, no two
// leases may end in one millisecond, since nobody says which of them would be forgotten first.
func (g *generator) do(o Op) answer {
	if o.Verb == opAdvance && g.profile.Leeway.WholeRest {
		o.By = wholeSeconds(o.By)
	}
	g.certain(&o)
	a := perform(context.Background(), g.model, g.script, &o)
	g.script.Ops = append(g.script.Ops, o)
	switch {
	case a.lease != nil && !o.ID.IsZero():
		g.track(o, a.lease)
	case o.Verb == opReserve:
		if d, ok := deniedBy(a.err); ok && !o.ID.IsZero() {
			g.denied, g.wait = append(g.denied, o), d.RetryAfter
		}
	case a.receipt != nil:
		g.settled(o, a.receipt)
	case o.Verb == opConfigure && a.err == nil:
		g.configured(g.script.set(o.Set))
	}
	renewed := a.lease != nil || o.Verb == opExtend && a.receipt != nil
	if renewed && g.script.Size > 0 && g.model.Tied(o.ID) {
		g.advance(1, time.Millisecond)
		g.do(Op{Verb: opExtend, ID: o.ID})
	}
	return a
}

// wholeSeconds is a time of whole seconds that is not shorter.
func wholeSeconds(d time.Duration) time.Duration {
	if rest := d % time.Second; rest > 0 {
		d += time.Second - rest
	}
	return d
}

func (g *generator) track(o Op, l *weir.Lease) {
	if g.find(o.ID) != nil {
		return
	}
	g.leases = append(g.leases, &tracked{
		reserve: o, limits: l.Limits, expires: l.Expires, holds: l.HoldsUntil,
	})
	if len(g.leases) > trackedMost {
		g.leases = g.leases[1:]
	}
}

// void cancels a lease ID that nobody has reserved.
func (g *generator) void() {
	e := &tracked{reserve: Op{Verb: opReserve, ID: g.freshID(), Charges: []weir.Charge{g.charge(1)}}}
	g.do(Op{Verb: opCancel, ID: e.reserve.ID})
	g.leases = append(g.leases, e)
}

func (g *generator) find(id weir.LeaseID) *tracked {
	for _, e := range g.leases {
		if e.reserve.ID == id {
			return e
		}
	}
	return nil
}

func (g *generator) settled(o Op, r *weir.Receipt) {
	e := g.find(o.ID)
	if e == nil {
		return
	}
	switch o.Verb {
	case opAdjust:
		if o.Seq > e.adjust.Seq {
			e.adjust = o
		}
	case opExtend:
		e.expires = r.Expires
	case opComplete:
		e.end, e.ended = o, r.At
	case opCancel:
		e.ended = r.At
	}
	e.holds = r.HoldsUntil
}

// pick returns a lease in a state, rather a young one, or nil.
func (g *generator) pick(state weir.LeaseState) *tracked {
	g.leases = slices.DeleteFunc(g.leases, func(e *tracked) bool {
		return g.model.StateOf(e.reserve.ID) == "" // forgotten
	})
	var found []*tracked
	for _, e := range g.leases {
		is := g.model.StateOf(e.reserve.ID)
		if is == weir.LeaseLive && !g.model.Now().Before(e.expires) {
			is = weir.LeaseExpired
		}
		if is == state {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil
	}
	young := max(0, len(found)-8)
	if g.rng.IntN(4) == 0 {
		young = 0
	}
	return found[young+g.rng.IntN(len(found)-young)]
}

// get returns a lease in a state. Where there is none it does what leads to one, and returns nil.
func (g *generator) get(state weir.LeaseState) *tracked {
	if e := g.pick(state); e != nil {
		return e
	}
	live := g.pick(weir.LeaseLive)
	switch {
	case state == weir.LeaseVoided:
		g.void()
	case live == nil:
		g.reserveFresh()
	case state == weir.LeaseCompleted:
		g.do(Op{Verb: opComplete, ID: live.reserve.ID, Totals: g.totals(live)})
	case state == weir.LeaseCancelled:
		g.do(Op{Verb: opCancel, ID: live.reserve.ID})
	case state == weir.LeaseExpired:
		g.advanceTo(live.expires)
	}
	return nil
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

func choose[E any](g *generator, from []E) E { return from[g.rng.IntN(len(from))] }

// between returns a number from low to high.
func (g *generator) between(low, high int64) int64 {
	return low + int64(g.rng.Uint64N(uint64(high-low)+1))
}
