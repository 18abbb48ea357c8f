package memory

import (
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// subjectState holds the states of all limits of one (entity, resource).
type subjectState struct {
	subject weir.Subject
	hash    uint64
	// index is the item's place among its stripe's.
	index int32
	// epoch is that of the last snapshot that has seen the item; see freezer.
	epoch  uint32
	states []limitState
	// stateBuf and bucketBuf are memory for the first state, as most items have one limit, a
	// bucket.
	stateBuf  [1]limitState
	bucketBuf kernel.Bucket
}

// limitState is what one limit counts. A limit that changes its kind gets another state, and finds
// the old one if it changes back.
type limitState struct {
	name    string
	kind    weir.Kind
	counter kernel.Counter
	// limit is the definition that the counter goes by; nil if a snapshot has not said.
	limit *weir.Limit
}

// stateOf returns the state of a limit, or nil; also of no item.
func (it *subjectState) stateOf(l *weir.Limit) *limitState {
	if it == nil {
		return nil
	}
	for i := range it.states { // mostly
		if s := &it.states[i]; s.limit == l {
			return s
		}
	}
	for i := range it.states {
		if s := &it.states[i]; s.kind == l.Kind && s.name == l.Name {
			return s
		}
	}
	return nil
}

// setCounter keeps a limit's counter, and returns where it is from then on.
func (it *subjectState) setCounter(l *weir.Limit, c kernel.Counter) kernel.Counter {
	if len(it.states) == 0 {
		it.states = it.stateBuf[:0]
		if b, ok := c.(*kernel.Bucket); ok {
			it.bucketBuf = *b
			c = &it.bucketBuf
		}
	}
	it.states = append(it.states, limitState{l.Name, l.Kind, c, l})
	return c
}

// inUse reports whether any limit has something in use at now.
func (it *subjectState) inUse(now int64) bool {
	return slices.ContainsFunc(it.states, func(s limitState) bool { return s.counter.InUse(now) })
}

// idleMS is when the sweep drops a state: ten seconds after its counter is forgotten, so that a
// clock which is a little behind finds what it would have found.
const idleMS = kernel.ForgetMS + 10_000

// newCounter returns the counter of a limit that nobody has used.
func newCounter(now int64, l *weir.Limit) kernel.Counter {
	d := l.Definition()
	switch l.Kind {
	case weir.Window:
		return kernel.NewWindow(now, d)
	case weir.Concurrency:
		return kernel.NewConcurrency(now, d)
	case weir.Budget:
		return kernel.NewBudget(now, d)
	default:
		return kernel.NewBucket(now, d)
	}
}
