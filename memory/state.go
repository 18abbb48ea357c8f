package memory

import (
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// subjectState has the states of all limits of one subject.
type subjectState struct {
	subject weir.Subject
	hash    uint64
	// index is its index in the dense slice of its stripe.
	index int32
	// epoch is the last snapshot that need not preserve it; see copyOnWrite.
	epoch  uint32
	states []limitState
	// stateBuf and bucketBuf are memory for the first state: most subjects have one limit, a
	// bucket, and need no further allocation.
	stateBuf  [1]limitState
	bucketBuf kernel.Bucket
}

// limitState is the state of one limit. A limit whose kind is changed gets another state, and finds
// the old one again if the kind is changed back.
type limitState struct {
	name    string
	kind    weir.Kind
	counter kernel.Counter
	// limit is the definition that the counter uses; nil if it came from a snapshot, which does not
	// have it.
	limit *weir.Limit
	// use is what was used of the limit in the hour of the latest call that counted.
	use hourUse
}

// stateOf returns the index of the state of a limit, or -1. it may be nil.
func (it *subjectState) stateOf(l *weir.Limit) int32 {
	if it == nil {
		return -1
	}
	for i := range it.states { // the usual case: the same definition as in the last call
		if it.states[i].limit == l {
			return int32(i)
		}
	}
	for i := range it.states {
		if s := &it.states[i]; s.kind == l.Kind && s.name == l.Name {
			return int32(i)
		}
	}
	return -1
}

// setCounter adds a limit's counter, and returns it: the first bucket is copied to bucketBuf.
func (it *subjectState) setCounter(l *weir.Limit, c kernel.Counter) kernel.Counter {
	if len(it.states) == 0 {
		it.states = it.stateBuf[:0]
		if b, ok := c.(*kernel.Bucket); ok {
			it.bucketBuf = *b
			c = &it.bucketBuf
		}
	}
	it.states = append(it.states, limitState{name: l.Name, kind: l.Kind, counter: c, limit: l})
	return c
}

// inUse reports whether any limit has something in use at now.
func (it *subjectState) inUse(now int64) bool {
	return slices.ContainsFunc(it.states, func(s limitState) bool { return s.counter.InUse(now) })
}

// idleMS is how long a counter must be idle before the sweep removes it. It is ten seconds longer
// than what counts as forgotten, so that a call with a clock that is a little behind still finds
// the state.
const idleMS = kernel.ForgetMS + 10_000

// newCounter returns a counter of a limit of which nothing is in use.
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
