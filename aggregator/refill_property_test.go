package aggregator_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/kernel"
)

// bucketWorld is a bucket item of two limits that clients and an aggregator write in virtual
// time.
type bucketWorld struct {
	*rapid.T
	// exact clients move rf with each take. Others take from the stored balance, as long as it
	// suffices, and leave rf alone, as the Python library does.
	exact bool
	// item is the item, and shadow the same without the aggregator: where it refills, a client does,
	// and takes nothing.
	item, shadow *schema.Bucket
	now          int64
	records      []*aggregator.Record
	// history has the states before each act of a client, and after the last one.
	history []moment
	refills int
}

// moment is the state of the item at a time, and what was admitted and refunded by then.
type moment struct {
	at                          int64
	value, admitted, refundable [2]int64
}

func (w *bucketWorld) rate(i int) kernel.Rate {
	return sharding.Share(&w.item.Limits[i], w.item.Shards)
}

// value is the balance of a limit with all that it gained, even above the capacity.
func (w *bucketWorld) value(i int) int64 {
	return w.item.Limits[i].Balance + w.rate(i).Gain(w.item.RefilledMS, w.now)
}

// note notes the state, and what a client is about to be admitted or to refund.
func (w *bucketWorld) note(admitted, refunded [2]int64) {
	m := moment{at: w.now}
	if n := len(w.history); n > 0 {
		m.admitted, m.refundable = w.history[n-1].admitted, w.history[n-1].refundable
	}
	last := &w.history[len(w.history)-1]
	for i := range m.value {
		last.value[i] = w.value(i)
		last.at = w.now
		m.admitted[i] += admitted[i]
		m.refundable[i] += refunded[i]
	}
	w.history = append(w.history, m)
}

// record notes what a client changed, after it did.
func (w *bucketWorld) record(old schema.Item) {
	w.records = append(w.records, &aggregator.Record{
		Position: position(len(w.history)), At: time.UnixMilli(w.now).Truncate(time.Second),
		Kind: aggregator.Modified, Key: w.item.ID().Key(), Old: old, New: w.item.Item(),
	})
}

// credit refills an item as a client does, and moves rf.
func (w *bucketWorld) credit(b *schema.Bucket) {
	for i := range b.Limits {
		l := &b.Limits[i]
		l.Balance = w.rate(i).Refill(l.Balance, b.RefilledMS, w.now)
	}
	b.RefilledMS = w.now
}

// take makes a client take of both limits, if they have enough.
func (w *bucketWorld) take() {
	cost := [2]int64{w.amount(0), w.amount(1)}
	fast, fits := !w.exact, true
	for i := range cost {
		l := &w.item.Limits[i]
		fast = fast && l.Balance >= cost[i]
		fits = fits && w.rate(i).Refill(l.Balance, w.item.RefilledMS, w.now) >= cost[i]
	}
	if !fast && !fits {
		return
	}
	w.note(cost, [2]int64{})
	old := w.item.Item()
	for _, b := range []*schema.Bucket{w.item, w.shadow} {
		if !fast {
			w.credit(b)
		}
		for i := range cost {
			b.Limits[i].Balance -= cost[i]
			b.Limits[i].Consumed += cost[i]
			if b.Limits[i].Balance < 0 {
				w.Fatalf("the clients alone could not admit %d: %+v", cost[i], b.Limits[i])
			}
		}
	}
	w.record(old)
}

// refund gives back of both limits, without moving rf, up to the share.
func (w *bucketWorld) refund() {
	old := w.item.Item()
	var back [2]int64
	for i := range back {
		back[i] = w.amount(i)
	}
	w.note([2]int64{}, back)
	for _, b := range []*schema.Bucket{w.item, w.shadow} {
		for i := range back {
			l := &b.Limits[i]
			l.Balance = w.rate(i).Refund(l.Balance, back[i])
			l.Consumed -= back[i]
		}
	}
	w.record(old)
}

func (w *bucketWorld) amount(i int) int64 {
	share := w.rate(i).CapacityMilli
	most := share / 1000 / rapid.Int64Range(1, 8).Draw(w.T, "part")
	return 1000 * rapid.Int64Range(0, max(1, most)).Draw(w.T, "amount")
}

// aggregate makes the aggregator write the refills after all records but the last ones.
func (w *bucketWorld) aggregate() {
	unseen := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(w.T, "unseen")
	seen := len(w.records) - min(len(w.records), unseen)
	refills := aggregator.Refills(w.records[:seen], time.UnixMilli(w.now))
	late := int64(1)
	if seen == len(w.records) {
		late = 0
	}
	w.records = w.records[seen:]
	for _, r := range refills {
		if w.writable(r) {
			w.apply(r, late)
		}
	}
}

// writable reports whether the conditions of a refill hold.
func (w *bucketWorld) writable(r *aggregator.Refill) bool {
	ok := r.Item.RefilledMS == w.item.RefilledMS
	for i, c := range r.Credits {
		balance := w.item.Limits[i].Balance
		ok = ok && balance >= c.Least && (c.Milli == 0 || balance <= c.Limit.Balance)
	}
	return ok
}

// apply writes a refill, and checks that it makes nothing, and loses at most a second's gain, or
// two if clients have taken since the record.
func (w *bucketWorld) apply(r *aggregator.Refill, late int64) {
	w.refills++
	var least [2]int64
	for i, c := range r.Credits {
		l, rate := &w.item.Limits[i], w.rate(i)
		value, second := w.value(i), rate.Gain(w.now-1000, w.now)
		least[i] = min(rate.CapacityMilli, value) - second*(1+late)
		after := l.Balance + c.Milli
		if c.Milli < 0 || after > value || after > max(l.Balance, rate.CapacityMilli-second) {
			w.Fatalf("%s: credited %d of %d", l.Name, c.Milli, value-l.Balance)
		}
		if after < least[i] {
			w.Fatalf("%s: %d of %d are left, at least %d must be", l.Name, after, value, least[i])
		}
		l.Balance = after
	}
	w.item.RefilledMS = r.AtMS
	w.credit(w.shadow)
}

// judge checks what was admitted in any interval: at most the capacity, what was gained in it,
// and what was given back. Clients that leave rf alone may have more than the capacity at its
// beginning.
func (w *bucketWorld) judge() {
	for from := range w.history {
		for to := from + 1; to < len(w.history); to++ {
			a, b := &w.history[from], &w.history[to]
			for i := range a.admitted {
				rate := w.rate(i)
				bound := rate.CapacityMilli
				if !w.exact {
					bound = max(bound, a.value[i])
				}
				bound += rate.Gain(a.at, b.at) + b.refundable[i] - a.refundable[i]
				if got := b.admitted[i] - a.admitted[i]; got > bound {
					w.Fatalf("limit %d: admitted %d in %d ms, at most %d are right", i, got, b.at-a.at, bound)
				}
			}
		}
	}
}

// TestRefillProperty lets clients take and refund and an aggregator refill, in random order.
func TestRefillProperty(t *testing.T) {
	t.Parallel()
	for name, exact := range map[string]bool{"exact clients": true, "fast writes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refills := 0
			rapid.Check(t, func(t *rapid.T) {
				w := newBucketWorld(t, exact)
				for range rapid.IntRange(1, 200).Draw(t, "acts") {
					w.now += rapid.SampledFrom([]int64{0, 0, 1, 40, 700, 1000, 5000, 60_000}).Draw(t, "ms")
					switch rapid.IntRange(0, 7).Draw(t, "act") {
					case 0:
						w.refund()
					case 1, 2:
						w.aggregate()
					default:
						w.take()
					}
				}
				w.note([2]int64{}, [2]int64{})
				w.judge()
				refills += w.refills
			})
			if t.Logf("%d refills", refills); refills == 0 {
				t.Error("the aggregator never refilled")
			}
		})
	}
}

func newBucketWorld(t *rapid.T, exact bool) *bucketWorld {
	w := &bucketWorld{T: t, exact: exact, now: start.UnixMilli(), history: make([]moment, 1)}
	b := &schema.Bucket{
		Namespace: acme.Namespace, Entity: acme.Entity, Resource: acme.Resource,
		RefilledMS: w.now, Shards: rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "shards"),
	}
	for _, name := range []string{"rpm", "tpm"} {
		capacity := rapid.Int64Range(40, 1000).Draw(t, "capacity")
		b.Limits = append(b.Limits, schema.BucketLimit{
			Name: name, Capacity: capacity * 1000,
			Refill:   rapid.Int64Range(1, 1000).Draw(t, "refill") * 1000,
			PeriodMS: rapid.SampledFrom([]int64{2000, 60_000, 60_000, 3_600_000}).Draw(t, "period"),
			Balance:  capacity * 1000 / int64(b.Shards),
		})
	}
	w.item, w.shadow = b, b.Copy()
	return w
}
