package cli

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/text"
)

// leaseAnswer prints a lease and the limits that admitted it.
func leaseAnswer(l *weir.Lease) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(l), Table: func(b *bytes.Buffer) {
		t := text.Table{}
		t.Add("lease", l.ID.String())
		t.Add("reserved", instant(l.ReservedAt))
		addEnds(&t, &weir.Receipt{Expires: l.Expires, HoldsUntil: l.HoldsUntil, Degraded: l.Degraded})
		if l.Replay {
			t.Add("repeated", "it had been reserved before, and was not charged again")
		}
		t.Write(b)
		if len(l.Limits) > 0 {
			b.WriteString("\n")
			writeStatuses(b, l.Limits, true)
		}
	}}
}

// denialAnswer prints the limits that were judged, and when to come back.
func denialAnswer(e *weir.DeniedError) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(e), Table: func(b *bytes.Buffer) {
		atLeast := ""
		if e.AtLeast {
			atLeast = "at least "
		}
		fmt.Fprintf(b, "denied: it would fit after %s%v\n", atLeast, e.RetryAfter)
		if e.Contended {
			b.WriteString("other writers came first too often\n")
		}
		if len(e.Limits) > 0 {
			b.WriteString("\n")
			writeStatuses(b, e.Limits, true)
		}
	}}
}

// receiptAnswer prints what a verb on a lease did.
func receiptAnswer(r *weir.Receipt) *connect.Answer {
	return &connect.Answer{Value: httpapi.Document(r), Table: func(b *bytes.Buffer) {
		t := text.Table{}
		t.Add("lease", r.LeaseID.String())
		t.Add("at", instant(r.At))
		addEnds(&t, r)
		t.Write(b)
	}}
}

// degradedNote says what a degraded lease is.
const degradedNote = "nothing was charged: the store did not answer, and the policy allows that"

// inDoubtNote says what a refund in doubt is.
const inDoubtNote = "what was given back may still be charged: the store did not answer that write"

// addEnds adds when a lease and its slots end by themselves, as far as they do.
func addEnds(t *text.Table, r *weir.Receipt) {
	if !r.Expires.IsZero() {
		t.Add("expires", instant(r.Expires))
	}
	if !r.HoldsUntil.IsZero() {
		t.Add("slots until", instant(r.HoldsUntil))
	}
	if r.Degraded {
		t.Add("degraded", degradedNote)
	}
	if r.RefundInDoubt {
		t.Add("in doubt", inDoubtNote)
	}
}

// instantLayout writes instants as the wire counts them: to the millisecond.
const instantLayout = "2006-01-02T15:04:05.000Z07:00"

// instant writes a time for people; nothing for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(instantLayout)
}
