package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
)

// refillCases returns the predecessors' mistakes with time.
func refillCases() []mistakeCase {
	return []mistakeCase{
		{"S1: starvation of slow limits", starvation},
		{"S2: refill dropped while rf moves", refillDropped},
		{"C1: clock skew, two processes five seconds apart", skewed},
		{"C1: clock skew, ten minutes fast", tenMinutesFast},
		{"R1: balance above capacity after a refund", refundAbove},
		{"R1: balance above capacity after a refund to a shard", refundAboveShare},
	}
}

// starvation checks that after 1,500 refills, a limit of ten a day has its whole gain.
func starvation(w *tableWorld) {
	// The other limit has a capacity of one, so that each reservation needs a refill.
	w.system(per("daily", 10, 10, 24*time.Hour), per("minute", 1, 12, time.Minute))
	p := w.process()
	p.admit(testEntity, weir.Costs{"daily": 10, "minute": 1})
	from := w.clock.Now().UnixMilli()
	p.log.take()
	passes := soak.Amount(300, 1500)
	for range passes {
		w.clock.Advance(5100 * time.Millisecond)
		p.admit(testEntity, weir.Costs{"minute": 1})
	}
	now := w.clock.Now().UnixMilli()
	refilled := 0
	for _, l := range p.log.take() {
		if l.kind == "normal" && !l.refused {
			refilled++
		}
	}
	if refilled < passes {
		w.Errorf("%d of %d passes moved the time of the refill, want all", refilled, passes)
	}
	ideal := (now - from) * 10_000 / (24 * time.Hour).Milliseconds()
	got := w.stored(testEntity, 0, "daily").Balance
	w.Logf("credited %d milli-units in %s and %d passes, ideal %d", got, w.since(), refilled, ideal)
	if got < ideal-1 || got > ideal+1 {
		w.Errorf("credited %d milli-units, want %d ± 1", got, ideal)
	}
}

// refillDropped checks that a refill for one limit credits the others too.
func refillDropped(w *tableWorld) {
	w.system(per("a", 60, 60, time.Minute), per("b", 600, 600, time.Minute))
	p := w.process()
	p.admit(testEntity, weir.Costs{"a": 60, "b": 600})
	w.clock.Advance(20 * time.Second)
	p.admit(testEntity, weir.Costs{"a": 20})
	equal(w, "rf", w.bucket(testEntity, 0).RefilledMS, w.clock.Now().UnixMilli())
	equal(w, "b's balance", w.stored(testEntity, 0, "b").Balance, 200_000)
	other := w.process()
	other.deny(testEntity, weir.Costs{"b": 201})
	other.admit(testEntity, weir.Costs{"b": 200})
}

// skewed checks that refills use the clock that is ahead, and no time is credited twice.
func skewed(w *tableWorld) {
	w.system(per("rpm", 60, 60, time.Minute))
	slow := processOptions{store: Options{NoSpeculation: true}}
	behind := w.process(slow)
	slow.limiter.Now = func() time.Time { return w.clock.Now().Add(5 * time.Second) }
	ahead := w.process(slow)
	admitted := 0
	rf := int64(0)
	for i := range 400 {
		p := behind
		if i%2 == 1 {
			p = ahead
		}
		if l, _ := p.ask(testEntity, weir.Costs{"rpm": 1}); l != nil {
			admitted++
		}
		if i%20 == 0 {
			now := w.bucket(testEntity, 0).RefilledMS
			if now < rf {
				w.Errorf("rf went from %d to %d", rf, now)
			}
			rf = now
		}
		w.clock.Advance(50 * time.Millisecond)
	}
	w.Logf("admitted %d in 20 s, ideal 80 to 85", admitted)
	if admitted > 86 || admitted < 80 {
		w.Errorf("admitted %d of 400 in 20 s, want 80 to 86", admitted)
	}
}

// tenMinutesFast checks that the answers show a process that its clock is wrong. The case uses the
// real time, because the table does.
func tenMinutesFast(w *tableWorld) {
	w.system(per("hourly", 60, 60, time.Hour))
	sound := w.process(processOptions{limiter: limiter.Options{Now: time.Now}})
	fastNow := func() time.Time { return time.Now().Add(10 * time.Minute) }
	fast := w.process(processOptions{store: Options{Now: fastNow}, limiter: limiter.Options{Now: fastNow}})
	fast.admit(testEntity, weir.Costs{"hourly": 30})
	if rf := w.bucket(testEntity, 0).RefilledMS; rf > time.Now().Add(time.Minute).UnixMilli() {
		w.Errorf("rf is %d ms ahead", rf-time.Now().UnixMilli())
	}
	sound.admit(testEntity, weir.Costs{"hourly": 30})
	// Ten minutes are worth ten units; the case takes less than four minutes.
	got := fast.drain(testEntity, "hourly", 20)
	w.Logf("offset %s; admitted %d after the bucket was empty", fast.store.ClockOffset(), got)
	if got > 5 {
		w.Errorf("a clock that is ten minutes fast was admitted %d more", got)
	}
}

// refundAbove tests a late refund that finds the bucket full.
func refundAbove(w *tableWorld) {
	w.system(per("rpm", 100, 100, time.Minute))
	a, b := w.process(), w.process()
	early, late := a.admit(testEntity, weir.Costs{"rpm": 40}), b.admit(testEntity, weir.Costs{"rpm": 40})
	w.clock.Advance(time.Minute)                                         // full again
	w.process(processOptions{}).admit(testEntity, weir.Costs{"rpm": 30}) // with a refill
	a.must(early.Cancel(w.Context()))
	b.must(late.Cancel(w.Context()))
	l := w.stored(testEntity, 0, "rpm")
	if l.Balance > l.Capacity {
		w.Errorf("the balance is %d of %d", l.Balance, l.Capacity)
	}
	equal(w, "admitted", b.drain(testEntity, "rpm", 200), 100)
	equal(w, "consumed", w.stored(testEntity, 0, "rpm").Consumed, 130_000)
}

// refundAboveShare tests a late refund that finds its shard full.
func refundAboveShare(w *tableWorld) {
	const shards = 4
	w.system(per("rpm", 100, 100, time.Minute))
	w.split(testEntity, shards, schema.Limit{Name: "rpm", Capacity: 100, Refill: 100, Seconds: 60})
	p := w.process()
	var leases []*weir.Lease
	for range 10 {
		leases = append(leases, p.admit(testEntity, weir.Costs{"rpm": 8}))
	}
	w.clock.Advance(time.Minute) // all shards are full: too large a refund exceeds a share
	p.admit(testEntity, weir.Costs{"rpm": 70})
	for _, l := range leases {
		p.must(l.Cancel(w.Context()))
	}
	for i, b := range w.shards(testEntity) {
		if got := b.Limit("rpm").Balance; got > 100_000/shards {
			w.Errorf("shard %d has %d milli-units, above its share", i, got)
		}
	}
	if got := w.process().drain(testEntity, "rpm", 200); got > 100 || got < 60 {
		w.Errorf("admitted %d, want what was left, and of the refunds what fits, up to 100", got)
	}
}
