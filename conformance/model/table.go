package model

import "github.com/weir-limiter/weir"

// Reaction is what a verb on a lease does.
type Reaction string

// The reactions: the words of the table in section 6.
const (
	Do       Reaction = "do"
	Replay   Reaction = "replay" // the same answer, nothing is charged
	Conflict Reaction = "conflict"
	Ended    Reaction = "ended"
	Unknown  Reaction = "unknown"
)

// react is the table of section 6. The state of an unknown lease is empty.
func react(v weir.Verb, s weir.LeaseState, same bool) Reaction {
	switch s {
	case "":
		return reactUnknown(v)
	case weir.LeaseVoided:
		return reactVoided(v)
	case weir.LeaseLive:
		return reactLive(v, same)
	case weir.LeaseCompleted:
		return reactCompleted(v, same)
	case weir.LeaseCancelled:
		return reactCancelled(v)
	default:
		return Ended
	}
}

func reactUnknown(v weir.Verb) Reaction {
	if v == weir.VerbReserve {
		return Do
	}
	return Unknown
}

// reactVoided: an ID that was cancelled before it was reserved has ended for a reserve. No other
// verb knows it.
func reactVoided(v weir.Verb) Reaction {
	if v == weir.VerbReserve {
		return Ended
	}
	return Unknown
}

func reactLive(v weir.Verb, same bool) Reaction {
	if v != weir.VerbReserve {
		return Do
	}
	if same {
		return Replay
	}
	return Conflict
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

// refusal is the error of a reaction that is one.
func refusal(r Reaction, s weir.LeaseState) error {
	code := map[Reaction]weir.Code{
		Conflict: weir.Conflict, Ended: weir.Ended, Unknown: weir.UnknownLease,
	}[r]
	if code == "" {
		return nil
	}
	return fault(code, "lease_id", "is "+string(s))
}
