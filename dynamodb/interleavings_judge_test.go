package dynamodb

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// observe follows what the items hold. At no moment does a slot stand for more than the bucket
// counts.
func (r *scheduleRun) observe(p *exploredServer, q *heldRequest, a *tableAnswer) {
	r.t.Helper()
	what := ""
	switch {
	case a.status != http.StatusOK:
		what = "refused"
	case q.write && (q.item == firstBucket || q.item == secondBucket):
		n, ok := a.consumedAfter(interleavedLimit)
		if !ok {
			r.t.Fatalf("no units in the answer %s to %s", a.body, q.body)
		}
		i, n := int(q.item-firstBucket), n-int64(len(r.calls))*1000
		what = fmt.Sprintf("%+d milli-units", n-r.consumed[i])
		r.consumed[i] = n
	case q.write && q.item == recordItem:
		slot, err := q.slotAfter(r.id)
		if err != nil {
			r.t.Fatalf("the slot in %s: %v", q.body, err)
		}
		what = slotText(slot)
		r.standing = unitPair{}
		if slot != nil && slot.State == schema.LeaseLive {
			r.standing = slotUnits(slot)
		} else if slot != nil && slot.State == schema.LeaseCompleted {
			r.standing = p.call.units
		}
	}
	r.note("%-30s %d %-12s %-8s %s", p.call, q.server, q.operation, itemText(q.item), what)
	for i, n := range r.standing {
		if missing := n*1000 - r.consumed[i]; missing > 0 {
			r.fault("the slot stands for %d milli-units that are not charged", missing)
		}
	}
}

func itemText(item byte) string {
	switch item {
	case firstBucket:
		return "bucket"
	case secondBucket:
		return "bucket 2"
	case recordItem:
		return "record"
	}
	return "other"
}

func slotText(slot *schema.Lease) string {
	switch {
	case slot == nil:
		return "empty"
	case slot.State == schema.LeaseLive:
		return fmt.Sprintf("live with %v units, sequence number %d", slotUnits(slot), slot.Seq)
	}
	return string(leaseState(slot.State))
}

// judge checks the answers and the items after the schedule. Then a fresh server repeats the calls
// that were answered and cancels the lease, and judge checks those answers and the items again.
func (r *scheduleRun) judge() {
	r.t.Helper()
	var made []madeCall
	var bound unitPair // of what may stay charged in excess
	for i, p := range r.servers {
		m := madeCall{p.call, noAnswer}
		if p.crashed {
			bound = r.initial.mostOf(p.call, slices.Concat(r.calls[:i], r.calls[i+1:]))
		} else {
			select {
			case m.answer = <-p.answer:
			default:
				r.fault("server %d waits without a request", p.gate.server)
				return
			}
		}
		r.note("server %d: %s: %s", p.gate.server, p.call, m.answer)
		made = append(made, m)
	}
	leases := r.initial.serialOrders(made)
	if len(leases) == 0 {
		r.fault("no order of the calls explains the answers")
		return
	}
	fresh := r.open(0)
	leases = r.matching(leases, fresh, bound)
	made = append(made, madeCall{modelCall{verb: weir.VerbCancel}, answerDone})
	for _, m := range made {
		if m.answer == noAnswer || len(leases) == 0 {
			continue
		}
		answer := m.make(r.t.Context(), fresh.limiter, r.entities, r.id)
		fresh.store.running.Wait()
		r.note("a fresh server: %s: %s", m, answer)
		var left []modelLease
		for _, l := range leases {
			if after, want := l.apply(m.modelCall); want == answer && !slices.Contains(left, after) {
				left = append(left, after)
			}
		}
		if leases = left; len(left) == 0 {
			r.fault("no order of the calls explains this answer")
		}
	}
	r.matching(leases, fresh, bound)
}

// matching reads the items, and returns those of the possible leases that agree with them.
func (r *scheduleRun) matching(leases []modelLease, fresh *exploredServer, bound unitPair) []modelLease {
	r.t.Helper()
	if len(leases) == 0 {
		return nil
	}
	slot := r.read(fresh)
	r.note("the table: %v milli-units; %s", r.consumed, slotText(slot))
	left := slices.DeleteFunc(slices.Clone(leases), func(l modelLease) bool {
		for i := range l.units {
			if n := r.consumed[i] - l.units[i]*1000; n < 0 || n > bound[i]*1000 {
				return true
			}
		}
		return !l.shows(slot, r.clock.now().UnixMilli())
	})
	if len(left) == 0 {
		r.fault("want one of %v, with at most %v units in excess", leases, bound)
	}
	return left
}

// read reads the items.
func (r *scheduleRun) read(by *exploredServer) *schema.Lease {
	r.t.Helper()
	record, _ := schema.LeaseRecordKey(r.namespace, r.id)
	keys := []schema.Key{record}
	for _, e := range r.entities {
		keys = append(keys, schema.BucketID{Namespace: r.namespace, Entity: e, Resource: testResource}.Key())
	}
	items, err := by.store.client.BatchGet(r.t.Context(), keys, true)
	if err != nil {
		r.t.Fatal(err)
	}
	slot, err := schema.ParseLease(items[0], r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, item := range items[1:] {
		b, err := schema.ParseBucket(item)
		if err != nil {
			r.t.Fatal(err)
		}
		l := b.Limit(interleavedLimit)
		r.consumed[i] = l.Consumed - int64(len(r.calls))*1000
		if l.Balance != interleavedCapacity*1000-l.Consumed {
			r.fault("the balance is %d, and %d are consumed", l.Balance, l.Consumed)
		}
	}
	return slot
}
