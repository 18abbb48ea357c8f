package model

import (
	"errors"

	"github.com/weir-limiter/weir"
)

// Note is the outcome of a call in more detail than its answer: a replay, for example, is answered
// like the call that it repeats.
type Note struct {
	// Verb is the name of the call.
	Verb string
	// Outcome is a word such as "ok", "denied", "replay" or "expired".
	Outcome string
}

// TimeEvents counts the effects of time on the limits that calls have looked at.
type TimeEvents struct {
	Refills      int // buckets that had gained something
	WindowEnds   int // pieces of windows that had returned
	HoldTimeouts int // slots that had timed out
	Rollovers    int // budgets whose period had ended
	Expired      int // leases that expired
	Early        int // leases that were forgotten early because the memory was full
}

type notes struct {
	last Note
	seen TimeEvents
}

func (n *notes) set(verb, outcome string) { n.last = Note{verb, outcome} }

// fail notes the error of a call and returns it.
func (n *notes) fail(verb string, err error) error {
	n.set(verb, why(err))
	return err
}

// why returns an error's code, with its reason if a code has several.
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

// Last returns the outcome of the last call.
func (m *Model) Last() Note {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notes.last
}

// Seen returns the effects of time in all calls so far.
func (m *Model) Seen() TimeEvents {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notes.seen
}

// passed counts the effects of time between two looks at a state.
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
