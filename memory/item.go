package memory

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// item holds the states of all limits of one (entity, resource).
type item struct {
	subject weir.Subject
	hash    uint64
	// at is the item's place among its stripe's.
	at int32
	// epoch is that of the last snapshot that has seen the item; see freezer.
	epoch  uint32
	states []state
	// one and bucket are memory for the first state, as most items have one limit, a bucket.
	one    [1]state
	bucket bucket
}

// state is what one limit counts. A limit that changes its kind gets another state, and finds the
// old one if it changes back.
type state struct {
	name string
	kind weir.Kind
	counter
	// limit is the definition that the state was last found by.
	limit *weir.Limit
}

// find returns the state of a limit, or nil; also of no item.
func (it *item) find(l *weir.Limit) counter {
	if it == nil {
		return nil
	}
	for i := range it.states { // mostly
		if s := &it.states[i]; s.limit == l {
			return s.counter
		}
	}
	for i := range it.states {
		s := &it.states[i]
		if s.kind == l.Kind && s.name == l.Name {
			s.limit = l
			return s.counter
		}
	}
	return nil
}

// put keeps a limit's counter, and returns where it is from then on.
func (it *item) put(l *weir.Limit, c counter) counter {
	if len(it.states) == 0 {
		it.states = it.one[:0]
		if b, ok := c.(*bucket); ok {
			it.bucket = *b
			c = &it.bucket
		}
	}
	it.states = append(it.states, state{l.Name, l.Kind, c, l})
	return c
}

// inUse reports whether any limit has something in use at now.
func (it *item) inUse(now int64) bool {
	return slices.ContainsFunc(it.states, func(s state) bool { return s.inUse(now) })
}

// counter is what one limit counts, in units; instants are Unix milliseconds. Each remembers the
// latest instant that it has seen and takes an earlier one as that.
type counter interface {
	// available brings the counter to now and returns what is left of l's capacity, rounded down.
	available(now int64, l *weir.Limit) int64
	// peek is available, but changes nothing.
	peek(now int64, l *weir.Limit) int64
	// freeAt returns the first instant at which want is available if nobody takes anything, at most
	// MaxInt64. Want is at most l's capacity.
	freeAt(now, want int64, l *weir.Limit) int64
	// counts reports whether the growth that c asks for can be counted, whatever the capacity.
	counts(now int64, c claim) bool
	// take counts n more units and returns where they are, if that has to be known.
	take(now, n int64, l *weir.Limit) (weir.Piece, bool)
	// settle makes a lease stand for something else and returns where its units then are.
	settle(now int64, c claim) []weir.Piece
	// inUse reports whether anything is in use at now.
	inUse(now int64) bool
	// idle reports whether nothing has been in use for a time (ms), and nobody has asked.
	idle(now, forMS int64) bool
	// clone returns a copy that has nothing in common with the counter.
	clone() counter
	// code writes the counter into a snapshot, or reads it.
	code(c *codec)
}

// A limit with nothing in use counts as forgotten a minute later: a denial leaves it so, and what
// is taken makes it anew. States go ten seconds after that, so that a clock which is a little
// behind finds what it would have found.
const (
	forgetMS = 60_000
	idleMS   = forgetMS + 10_000
)

// newCounter returns the state of a limit that nobody has used.
func newCounter(now int64, l *weir.Limit) counter {
	switch l.Kind {
	case weir.Window, weir.Concurrency:
		return &occupancy{seen: now}
	case weir.Budget:
		return &budget{seen: now}
	default:
		return newBucket(now, l)
	}
}
