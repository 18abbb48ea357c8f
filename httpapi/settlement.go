package httpapi

import (
	"net/http"
	"slices"

	"github.com/weir-limiter/weir"
)

// Answer is what came of a call, for the Settle of [MiddlewareOptions] and [TransportOptions].
type Answer struct {
	// Status is the status of the answer; 0 if there was no answer.
	Status int
	// Bytes is the number of bytes of the body that were passed on.
	Bytes int64
	// Cut reports that the end of the answer was not seen: there was no answer, it broke off, or
	// the caller left.
	Cut bool
	// Left reports that the caller left: the context of the request ended, or the body was closed
	// before its end was seen.
	Left bool
}

// Settlement is what a call is charged.
type Settlement int

// The settlements. Slots return with each of them.
const (
	// SettleReported charges what was reported. Without a report, what was reserved stays charged.
	SettleReported Settlement = iota
	// SettleReserved leaves what was reserved charged.
	SettleReserved
	// SettleGiveBack gives everything back, except what Requests names.
	SettleGiveBack
)

// SettleByStatus is the default settlement. An answer with a status of 400 or above gives back,
// because the providers of LLMs usually bill nothing for it. Everything else charges what was
// reported: also an answer that was cut off, so that aborting a stream does not make it free.
func SettleByStatus(a Answer) Settlement {
	if a.Status >= http.StatusBadRequest {
		return SettleGiveBack
	}
	return SettleReported
}

// giveBack makes [weir.Do] give back what was asked for, except for the limits that requests names.
func giveBack(lease *weir.Lease, asked *weir.Request, requests []string) {
	charges := asked.Charges
	if len(charges) == 0 {
		charges = []weir.Charge{{Entity: asked.Entity, Resource: asked.Resource, Costs: asked.Costs}}
	}
	kept := false
	zeros := make([]weir.Costs, len(charges))
	keyed := weir.Costs{}
	for i, c := range charges {
		zeros[i] = weir.Costs{}
		for name := range c.Costs {
			if slices.Contains(requests, name) {
				kept = true
				continue
			}
			zeros[i][name] = 0
			keyed[weir.Subject{Entity: c.Entity, Resource: c.Resource}.FullName(name)] = 0
		}
	}
	switch {
	case !kept:
		lease.GiveBack()
	case asked.Keyed:
		lease.Report(keyed)
	default:
		lease.Report(zeros...)
	}
}
