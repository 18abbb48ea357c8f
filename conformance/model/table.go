package model

import (
	"github.com/weir-limiter/weir"

	"github.com/weir-limiter/weir/driver"
)

// Reaction is the effect of a verb on a lease.
type Reaction string

// The reactions, by the words of the table in section 6.
const (
	Do       Reaction = "do"
	Replay   Reaction = "replay" // the same answer, nothing is charged
	Ignored  Reaction = "ignored"
	Conflict Reaction = "conflict"
	Ended    Reaction = "ended"
	Unknown  Reaction = "unknown"
	Void     Reaction = "void" // unknown, and the ID is ended
)

// TableCell is a cell of the table in section 6.
type TableCell struct {
	Verb weir.Verb
	// State is the state of the lease; empty if the lease is not known.
	State driver.LeaseState
	// Same is set if the content equals that of the earlier call.
	Same bool
	// Seq is the sequence number of an adjust. Last is that of the last one applied.
	Seq, Last int64
	// Refused is set if a reserve with an unknown ID would be refused (6.1).
	Refused bool
}

func (m *Model) react(c TableCell) Reaction { return m.points.React.pass(c, React(c)) }

// React returns the reaction in a cell of the table of section 6.
func React(c TableCell) Reaction {
	switch c.State {
	case "":
		return reactUnknown(c)
	case driver.LeaseVoided:
		return reactVoided(c.Verb)
	case driver.LeaseLive:
		return reactLive(c)
	case driver.LeaseCompleted:
		return reactCompleted(c.Verb, c.Same)
	case driver.LeaseCancelled:
		return reactCancelled(c.Verb)
	default:
		return Ended
	}
}

// reactUnknown returns a reaction of the column of unknown leases. A cancel ends the ID, unless a
// reserve with it would be refused (6.7).
func reactUnknown(c TableCell) Reaction {
	switch {
	case c.Verb == weir.VerbReserve:
		return Do
	case c.Verb == weir.VerbCancel && !c.Refused:
		return Void
	default:
		return Unknown
	}
}

// reactVoided returns a reaction of the column of IDs that were cancelled before they were
// reserved. To a reserve such an ID has ended; to every other verb it is unknown.
func reactVoided(v weir.Verb) Reaction {
	if v == weir.VerbReserve {
		return Ended
	}
	return Unknown
}

func reactLive(c TableCell) Reaction {
	switch c.Verb {
	case weir.VerbReserve:
		if c.Same {
			return Replay
		}
		return Conflict
	case weir.VerbAdjust:
		return reactSeq(c.Seq, c.Last)
	default:
		return Do
	}
}

// reactSeq returns what an adjust does to a live lease. A sequence number above the last one is
// applied, whatever the gap; the same one is a replay, a lower one is ignored (7.1).
func reactSeq(seq, last int64) Reaction {
	switch {
	case seq > last:
		return Do
	case seq == last:
		return Replay
	default:
		return Ignored
	}
}

func reactCompleted(v weir.Verb, same bool) Reaction {
	switch {
	case v == weir.VerbComplete && same:
		return Replay
	case v == weir.VerbComplete, v == weir.VerbCancel:
		return Conflict
	default:
		return Ended
	}
}

func reactCancelled(v weir.Verb) Reaction {
	switch v {
	case weir.VerbCancel:
		return Replay
	case weir.VerbComplete:
		return Conflict
	default:
		return Ended
	}
}

// refusal returns the error of a reaction, or nil.
func refusal(r Reaction, s driver.LeaseState) error {
	code := map[Reaction]weir.Code{
		Conflict: weir.Conflict, Ended: weir.Ended, Unknown: weir.UnknownLease, Void: weir.UnknownLease,
	}[r]
	if code == "" {
		return nil
	}
	return fault(code, "lease_id", "is "+string(s))
}
