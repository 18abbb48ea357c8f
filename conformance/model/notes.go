package model

import (
	"errors"

	"github.com/weir-limiter/weir"
)

// Note says what became of a call, more finely than its answer does: a replay answers like the
// call that it repeats.
type Note struct {
	// Verb is the call's name.
	Verb string
	// Outcome is one of a few words: "ok", "denied", "replay", "expired", …
	Outcome string
}

// TimeEvents counts what time did to the limits that calls looked at.
type TimeEvents struct {
	Refills      int // buckets that had gained something
	WindowEnds   int // pieces of windows that had returned
	HoldTimeouts int // slots that had timed out
	Rollovers    int // budgets whose period had ended
	Expired      int // leases that ended by themselves
	Early        int // leases that were forgotten because the memory was full
}

type notes struct {
	last Note
	seen TimeEvents
}

func (n *notes) set(verb, outcome string) { n.last = Note{verb, outcome} }

// fail notes why a call fails, and returns the error.
func (n *notes) fail(verb string, err error) error {
	n.set(verb, why(err))
	return err
}

// why returns an error's code, with its reason if one code has several.
func why(err error) string {
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		return "denied"
	}
	e, ok := errors.AsType[*weir.Error](err)
	switch {
	case !ok:
		return "error"
	case e.Code == weir.Invalid, e.Code == weir.Conflict, e.Code == weir.Ended:
		return string(e.Code) + ": " + e.Reason
	default:
		return string(e.Code)
	}
}

// Last returns what became of the last call.
func (m *Model) Last() Note {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notes.last
}

// TimeEvents returns what the calls so far have met.
func (m *Model) Seen() TimeEvents {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notes.seen
}

// passed counts what time has done between two looks at a state.
func (n *notes) passed(k weir.Kind, was, is *state) {
	gone := 0
	for _, p := range was.pieces {
		if p.Units > 0 && p.Until <= is.seen {
			gone++
		}
	}
	switch k {
	case weir.Bucket:
		if is.seen > was.seen && is.bucket.Balance.Cmp(was.bucket.Balance) > 0 {
			n.seen.Refills++
		}
	case weir.Window:
		n.seen.WindowEnds += gone
	case weir.Concurrency:
		n.seen.HoldTimeouts += gone
	case weir.Budget:
		n.seen.Rollovers += gone
	}
}
