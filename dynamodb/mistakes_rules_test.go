package dynamodb

import (
	"errors"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// writeRuleCases returns a case for each rule of the writes. In each of them a process writes by an
// image that is out of date, so that the rule matters.
func writeRuleCases() []mistakeCase {
	return []mistakeCase{
		{"write rule: seed 001's concurrency trace", concurrencyTrace},
		{"write rule: two refills on one image", twoRefills},
		{"write rule: a refill beside a refund", refillBesideRefund},
		{"write rule: a charge beside a refund", chargeBesideRefund},
		{"write rule: two charges on one image", twoCharges},
		{"write rule: a cold charge beside others", coldCharge},
		{"write rule: a definition changed on the item", definitionChanged},
		{"write rule: a shard count that another process raised", staleShards},
		{"write rule: two processes create an item", creationRace},
		{"write rule: a bucket that was switched off", switchedOffBucket},
		{"write rule: an item that is stamped", stampedItem},
		{"write rule: an item that has expired", expiredItem},
		{"write rule: a debt outlives the item", debtOutlives},
		{"write rule: an item that was deleted", deletedItem},
		{"write rule: a refill that was set back", refillSetBack},
	}
}

// concurrencyTrace is an example from seed 001: 90 of 100, at 1.67 a second. A second later A takes
// 3 and B takes 7, both by the image from before. The balance ends at 81.67, and rf moves once.
func concurrencyTrace(w *tableWorld) {
	w.system(per("rpm", 100, 100, time.Minute), per("full", 50, 50, time.Minute))
	a, b := w.process(), w.process()
	a.admit(testEntity, weir.Costs{"rpm": 10})
	l := b.admit(testEntity, weir.Costs{"rpm": 1})
	b.must(l.Cancel(w.Context())) // now both have the image of 90
	from := w.clock.Now().UnixMilli()
	w.clock.Advance(time.Second)
	now := w.clock.Now().UnixMilli()
	gained := now*100_000/60_000 - from*100_000/60_000
	// The other limit is full, so a take from it needs a write that refills, and the refill is
	// contended.
	a.log.take()
	b.log.take()
	a.admit(testEntity, weir.Costs{"rpm": 3, "full": 1})
	equal(w, "A's writes", kinds(a.log.take()), "normal")
	equal(w, "after A", w.stored(testEntity, 0, "rpm").Balance, 90_000+gained-3000)
	equal(w, "rf", w.bucket(testEntity, 0).RefilledMS, now)
	b.admit(testEntity, weir.Costs{"rpm": 7, "full": 1})
	writes := b.log.take()
	equal(w, "B's writes", kinds(writes), "normal refused, speculative")
	equal(w, "after B", w.stored(testEntity, 0, "rpm").Balance, 90_000+gained-3000-7000)
	equal(w, "rf", w.bucket(testEntity, 0).RefilledMS, now)
	if gained != 1666 && gained != 1667 {
		w.Errorf("gained %d in a second, want 1666 or 1667", gained)
	}
	for _, u := range writes[len(writes)-1].update.adds {
		got := writes[len(writes)-1].update.spell(u)
		if strings.HasPrefix(got, "b_rpm_tk") {
			equal(w, "B's second write", got, "b_rpm_tk -7000")
		}
	}
}

// both returns two processes that know the same item of 100 with the given balance.
func (w *tableWorld) both(left int64) (a, b *process) {
	w.Helper()
	w.system(per("rpm", 100, 100, time.Minute))
	a, b = w.process(), w.process()
	if left < 100 {
		a.admit(testEntity, weir.Costs{"rpm": 100 - left})
	}
	if left == 0 {
		b.deny(testEntity, weir.Costs{"rpm": 1})
		w.clock.Advance(2 * time.Second) // the denial is remembered for one second
		return a, b
	}
	l := b.admit(testEntity, weir.Costs{"rpm": 1})
	b.must(l.Cancel(w.Context()))
	return a, b
}

// twoRefills checks that of two processes, one is credited the gain since the last refill.
func twoRefills(w *tableWorld) {
	a, b := w.both(0)
	w.clock.Advance(4 * time.Second)
	a.admit(testEntity, weir.Costs{"rpm": 10})
	b.deny(testEntity, weir.Costs{"rpm": 1})
	w.clock.Advance(time.Minute)
	b.admit(testEntity, weir.Costs{"rpm": 40})
	a.admit(testEntity, weir.Costs{"rpm": 40})
	equal(w, "left", w.stored(testEntity, 0, "rpm").Balance, 20_000)
}

// refillBesideRefund checks that another writer's refund that the process has not seen does not
// lift a refill above the capacity.
func refillBesideRefund(w *tableWorld) {
	w.system(per("rpm", 100, 100, time.Minute))
	a, b := w.process(), w.process()
	a.admit(testEntity, weir.Costs{"rpm": 60})
	b.admit(testEntity, weir.Costs{"rpm": 30})
	b.admit(testEntity, weir.Costs{"rpm": 1}) // b knows 9
	w.clock.Advance(20 * time.Second)
	w.edit(testEntity, 0, balance("rpm", 95)) // Python refunds 86
	b.admit(testEntity, weir.Costs{"rpm": 15})
	if s := w.stored(testEntity, 0, "rpm"); s.Balance > 85_000 {
		w.Errorf("the balance is %d after 15 of at most 100 were taken", s.Balance)
	}
	equal(w, "admitted", a.drain(testEntity, "rpm", 200), 85)
}

// chargeBesideRefund checks that such a refund does not keep a charge from noticing that the bucket
// is full.
func chargeBesideRefund(w *tableWorld) {
	a, b := w.both(100)
	l := a.admit(testEntity, weir.Costs{"rpm": 60})
	first := b.admit(testEntity, weir.Costs{"rpm": 5}) // b knows 35
	a.must(l.Cancel(w.Context()))                      // 95, unseen by b
	w.clock.Advance(30 * time.Second)                  // full for most of that time
	b.admit(testEntity, weir.Costs{"rpm": 10})
	equal(w, "admitted", w.process().drain(testEntity, "rpm", 200), 90)
	b.must(first.Cancel(w.Context()))
	equal(w, "admitted after the refund", w.process().drain(testEntity, "rpm", 200), 5)
}

func twoCharges(w *tableWorld) {
	w.system(noRefill("n", 100))
	a, b := w.process(), w.process()
	a.admit(testEntity, weir.Costs{"n": 1})
	b.admit(testEntity, weir.Costs{"n": 1})
	a.admit(testEntity, weir.Costs{"n": 90})
	b.deny(testEntity, weir.Costs{"n": 20})
	b.admit(testEntity, weir.Costs{"n": 8})
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 0)
}

func coldCharge(w *tableWorld) {
	w.system(noRefill("n", 100))
	w.process().admit(testEntity, weir.Costs{"n": 90})
	cold := w.process()
	cold.deny(testEntity, weir.Costs{"n": 20})
	w.process().admit(testEntity, weir.Costs{"n": 10})
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 0)
}

// definitionChanged has Python rewrite the definition in place, which neither trims the balance nor
// moves rf.
func definitionChanged(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	p.admit(testEntity, weir.Costs{"n": 1})
	w.system(noRefill("n", 10))
	w.edit(testEntity, 0, map[string]int64{schema.BucketAttribute("n", schema.FieldCapacity): 10_000})
	if _, err := p.ask(testEntity, weir.Costs{"n": 20}); !errors.Is(err, weir.NeverSatisfiable) {
		w.Errorf("twenty of ten: got %v, want never satisfiable", err)
	}
	equal(w, "admitted", p.drain(testEntity, "n", 50), 10)
}

// staleShards checks that a process that does not know of a split refills no more than a share.
func staleShards(w *tableWorld) {
	a, _ := w.both(0)
	w.edit(testEntity, 0, map[string]int64{schema.AttrShardCount: 2})
	w.clock.Advance(36 * time.Second) // 60 of the whole, 30 of a share
	a.admit(testEntity, weir.Costs{"rpm": 20})
	if got := w.stored(testEntity, 0, "rpm").Balance; got > 12_000 {
		w.Errorf("the first shard has %d milli-units, above what its share gained", got)
	}
	equal(w, "shards", w.bucket(testEntity, 0).Shards, 2)
}

// creationRace checks that the second of two processes that create an item takes what the first has
// left.
func creationRace(w *tableWorld) {
	w.system(noRefill("n", 100))
	first := w.process()
	second := w.hooked(processOptions{store: Options{NoSpeculation: true}}, &wrong{
		create: func() { first.admit(testEntity, weir.Costs{"n": 90}) },
	})
	second.deny(testEntity, weir.Costs{"n": 20})
	second.admit(testEntity, weir.Costs{"n": 10})
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 0)
	equal(w, "consumed", w.stored(testEntity, 0, "n").Consumed, 100_000)
}

func switchedOffBucket(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	b := w.bucket(testEntity, 0)
	b.Disabled = true
	w.put(b)
	for _, q := range []*process{p, w.process()} {
		if _, err := q.ask(testEntity, weir.Costs{"n": 1}); !errors.Is(err, weir.PermissionDenied) {
			w.Errorf("got %v, want permission denied", err)
		}
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 99_000)
	equal(w, "milli-writes", w.bucket(testEntity, 0).Writes.Consumed, b.Writes.Consumed)
	b.Disabled = false
	w.put(b)
	p.admit(testEntity, weir.Costs{"n": 1})
}

// stampedItem checks that an item with vu is refilled and trimmed before it is used again.
func stampedItem(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 10})
	p.admit(testEntity, weir.Costs{"n": 1})
	w.edit(testEntity, 0, map[string]int64{schema.AttrVU: 0})
	p.admit(testEntity, weir.Costs{"n": 1})
	if vu := w.bucket(testEntity, 0).ValidUntil; vu != nil {
		w.Errorf("vu is %d, want it removed by a write that refills", *vu)
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 88_000)
}

// expiredItem checks that an item that DynamoDB may delete at any moment is not charged without a
// new ttl.
func expiredItem(w *tableWorld) {
	w.system(noRefill("n", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 10})
	p.admit(testEntity, weir.Costs{"n": 10})
	w.edit(testEntity, 0, map[string]int64{schema.AttrTTL: w.clock.Now().Unix() - 5})
	p.admit(testEntity, weir.Costs{"n": 10})
	if ttl := w.bucket(testEntity, 0).TTL; ttl <= w.clock.Now().Unix() {
		w.Errorf("ttl is %d, and it is %d", ttl, w.clock.Now().Unix())
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 70_000)
}

// debtOutlives checks that an item is not deleted while it has a debt.
func debtOutlives(w *tableWorld) {
	w.system(per("rpm", 100, 100, time.Minute))
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"rpm": 10})
	p.must(l.Complete(w.Context(), weir.Costs{"rpm": 10_100})) // a hundred minutes to repay
	if ttl := w.bucket(testEntity, 0).TTL; ttl <= w.clock.Now().Add(100*time.Minute).Unix() {
		w.Errorf("ttl is in %d s, before the debt is repaid", ttl-w.clock.Now().Unix())
	}
	w.clock.Advance(90 * time.Minute)
	p.deny(testEntity, weir.Costs{"rpm": 1})
	w.clock.Advance(11 * time.Minute)
	p.admit(testEntity, weir.Costs{"rpm": 1})
}

// deletedItem checks that nothing is counted on an item that was deleted.
func deletedItem(w *tableWorld) {
	w.limits(weir.Subject{Entity: testEntity, Resource: testResource}, noRefill("n", 100))
	p := w.process()
	l := p.admit(testEntity, weir.Costs{"n": 10})
	p.admit(testEntity, weir.Costs{"n": 10})
	gone := &ddb.DeleteItemInput{TableName: &w.table.Name, Key: w.id(testEntity, 0).Key().Item()}
	if _, err := w.eye.store.client.API.DeleteItem(w.Context(), gone); err != nil {
		w.Fatalf("delete: %v", err)
	}
	p.must(l.Cancel(w.Context()))
	if item := w.raw(testEntity, 0); item != nil {
		w.Errorf("the refund made %v", item)
	}
	equal(w, "admitted", p.drain(testEntity, "n", 200), 100)
}

// refillSetBack checks that an rf that another writer has set back does not refill a full bucket a
// second time.
func refillSetBack(w *tableWorld) {
	a, _ := w.both(60)
	w.clock.Advance(time.Second)
	a.admit(testEntity, weir.Costs{"rpm": 1})
	b := w.bucket(testEntity, 0)
	w.edit(testEntity, 0, map[string]int64{schema.AttrRF: b.RefilledMS - 30_000})
	a.admit(testEntity, weir.Costs{"rpm": 10})
	// By the item the bucket was full, so 90 are left.
	equal(w, "admitted", w.process().drain(testEntity, "rpm", 200), 90)
}
