package dynamodb

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

// modelLease is a lease by the table of docs/semantics.md. The zero value is an unknown lease.
type modelLease struct {
	state    schema.LeaseState // 0 if unknown
	content  unitPair          // the units of the request
	units    unitPair          // what the lease stands for, also after it was completed
	seq      int64
	extended bool
}

func (l modelLease) String() string {
	switch l.state {
	case 0:
		return "unknown"
	case schema.LeaseLive:
		return fmt.Sprintf("live with %v units, sequence number %d, extended %t", l.units, l.seq, l.extended)
	}
	return fmt.Sprintf("%s with %v units", leaseState(l.state), l.units)
}

// unitPair are the units of the first and of the second charge of a lease. The second are 0 if a
// lease has one charge.
type unitPair [2]int64

func (u unitPair) String() string {
	if u[1] == 0 {
		return strconv.FormatInt(u[0], 10)
	}
	return fmt.Sprintf("%d+%d", u[0], u[1])
}

// modelCall is a call about a lease. Its text is its name.
type modelCall struct {
	verb  weir.Verb
	units unitPair // of a reserve, an adjust or a complete
	seq   int64
}

// interleavedCalls returns the calls. The first one makes the lease of a live case.
func interleavedCalls(charges int) []modelCall {
	all := []modelCall{
		{verb: weir.VerbReserve, units: unitPair{10, 20}},
		{verb: weir.VerbReserve, units: unitPair{11, 20}},
		{verb: weir.VerbAdjust, units: unitPair{17, 25}, seq: 1},
		{verb: weir.VerbAdjust, units: unitPair{4, 6}, seq: 2},
		{verb: weir.VerbExtend},
		{verb: weir.VerbComplete, units: unitPair{15, 23}},
		{verb: weir.VerbComplete, units: unitPair{3, 2}},
		{verb: weir.VerbCancel},
	}
	if charges == 1 {
		for i := range all {
			all[i].units[1] = 0
		}
		return all
	}
	return append(all, // both charge and give back
		modelCall{verb: weir.VerbAdjust, units: unitPair{5, 24}, seq: 3},
		modelCall{verb: weir.VerbComplete, units: unitPair{12, 9}},
	)
}

func (c modelCall) String() string {
	switch c.verb {
	case weir.VerbAdjust:
		return fmt.Sprintf("adjust %d to %v", c.seq, c.units)
	case weir.VerbReserve, weir.VerbComplete:
		return fmt.Sprintf("%s %v", c.verb, c.units)
	}
	return string(c.verb)
}

// The answers of calls that are not errors. That of an error is its code.
const (
	answerDone   = "done"
	answerReplay = "replay" // of a reserve
	noAnswer     = "none"   // the server was killed
)

// make makes the call and returns the answer.
func (c modelCall) make(ctx context.Context, l *limiter.Limiter, entities []string, id weir.LeaseID) string {
	var receipt *weir.Receipt
	var err error
	var totals []weir.Costs
	r := &weir.Request{LeaseID: id}
	for i, e := range entities {
		totals = append(totals, weir.Costs{interleavedLimit: c.units[i]})
		r.Charges = append(r.Charges, weir.Charge{Entity: e, Resource: testResource, Costs: totals[i]})
	}
	switch c.verb {
	case weir.VerbReserve:
		lease, err := l.Reserve(ctx, r)
		if err == nil && lease.Replay {
			return answerReplay
		}
		return answerOf(err)
	case weir.VerbAdjust:
		receipt, err = l.Adjust(ctx, id, c.seq, totals)
	case weir.VerbComplete:
		receipt, err = l.Complete(ctx, id, totals)
	case weir.VerbCancel:
		receipt, err = l.Cancel(ctx, id)
	case weir.VerbExtend:
		receipt, err = l.Extend(ctx, id)
	}
	if err == nil && receipt.RefundInDoubt {
		return "refund in doubt"
	}
	return answerOf(err)
}

func answerOf(err error) string {
	switch code := codeOf(err); {
	case err == nil:
		return answerDone
	case code == "":
		return err.Error()
	default:
		return string(code)
	}
}

// apply returns the lease after a call and the answer to the call.
func (l modelLease) apply(c modelCall) (after modelLease, answer string) {
	switch {
	case c.verb == weir.VerbReserve:
		return l.reserve(c)
	case l.state == 0 && c.verb == weir.VerbCancel:
		return modelLease{state: schema.LeaseVoided}, string(weir.UnknownLease)
	case l.state == 0, l.state == schema.LeaseVoided:
		return l, string(weir.UnknownLease)
	case l.state == schema.LeaseLive:
		return l.update(c), answerDone
	case l.state == schema.LeaseCompleted && c.verb == weir.VerbComplete && c.units == l.units,
		l.state == schema.LeaseCancelled && c.verb == weir.VerbCancel:
		return l, answerDone
	case c.verb == weir.VerbComplete, c.verb == weir.VerbCancel:
		return l, string(weir.Conflict)
	}
	return l, string(weir.Ended)
}

func (l modelLease) reserve(c modelCall) (after modelLease, answer string) {
	switch {
	case l.state == 0:
		return modelLease{state: schema.LeaseLive, content: c.units, units: c.units}, answerDone
	case l.state != schema.LeaseLive:
		return l, string(weir.Ended)
	case l.content != c.units:
		return l, string(weir.Conflict)
	}
	return l, answerReplay
}

// update returns a live lease after an update.
func (l modelLease) update(c modelCall) modelLease {
	switch c.verb {
	case weir.VerbAdjust:
		if c.seq > l.seq {
			l.units, l.seq = c.units, c.seq
		}
	case weir.VerbComplete:
		l = modelLease{state: schema.LeaseCompleted, units: c.units}
	case weir.VerbCancel:
		l = modelLease{state: schema.LeaseCancelled}
	case weir.VerbExtend:
		l.extended = true
	}
	return l
}

// shows reports whether a slot holds the lease. The slot of an ended lease does not have the units.
// now is the time of all calls but the first reserve of a live case.
func (l modelLease) shows(slot *schema.Lease, now int64) bool {
	if slot == nil {
		return l.state == 0
	}
	if slot.State != l.state || l.state != schema.LeaseLive {
		return slot.State == l.state
	}
	renewed := slot.AtMS
	if l.extended {
		renewed = now
	}
	return slotUnits(slot) == l.units && slot.Seq == l.seq &&
		slot.ExpiresMS == renewed+interleavedLifetime.Milliseconds()
}

// slotUnits returns the units for which a live lease in a slot stands.
func slotUnits(slot *schema.Lease) (u unitPair) {
	for i := range slot.Takes {
		for _, p := range slot.Takes[i].Parts {
			u[p.Charge] += p.Units
		}
	}
	return u
}

// madeCall is a call with its answer.
type madeCall struct {
	modelCall
	answer string
}

// serialOrders returns the leases after each order of the calls that explains all answers. A call
// without an answer may have happened or not.
func (l modelLease) serialOrders(calls []madeCall) []modelLease {
	if len(calls) == 0 {
		return []modelLease{l}
	}
	var found []modelLease
	add := func(more []modelLease) {
		for _, m := range more {
			if !slices.Contains(found, m) {
				found = append(found, m)
			}
		}
	}
	for i, c := range calls {
		others := slices.Concat(calls[:i], calls[i+1:])
		after, answer := l.apply(c.modelCall)
		if c.answer == noAnswer {
			add(l.serialOrders(others))
		}
		if c.answer == noAnswer || c.answer == answer {
			add(after.serialOrders(others))
		}
	}
	return found
}

// mostOf returns the most units that one call can charge or give back, whatever of the others
// happens before it.
func (l modelLease) mostOf(c modelCall, others []modelCall) unitPair {
	var most unitPair
	after, _ := l.apply(c)
	for i := range most {
		if c.verb == weir.VerbReserve {
			most[i] = c.units[i] // a repeat is charged too, before the slot is found taken
		}
		most[i] = max(most[i], after.units[i]-l.units[i], l.units[i]-after.units[i])
	}
	for k, o := range others {
		next, _ := l.apply(o)
		of := next.mostOf(c, slices.Concat(others[:k], others[k+1:]))
		for i := range most {
			most[i] = max(most[i], of[i])
		}
	}
	return most
}
