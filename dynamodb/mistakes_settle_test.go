package dynamodb

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// settleCases returns mistakes between a call and its answer, and with what is left behind.
func settleCases() []mistakeCase {
	return []mistakeCase{
		{"X1: cancelled between reserve and answer", cancelledMidway(false)},
		{"X1: cancelled between reserve and answer, with a parent", cancelledMidway(true)},
		{"H1: errors around on_unavailable, block", storeGone(weir.Block)},
		{"H1: errors around on_unavailable, allow", storeGone(weir.Allow)},
		{"a failed complete swallowed", failedComplete},
		{"an unanswered charge counts at most once", unansweredCharge},
		{"double refunds, of which one was not answered", unansweredRefund},
		{"a refund without an answer is in doubt, the answer lost", refundInDoubt(testkit.LostAnswer, false)},
		{"a refund without an answer is in doubt, the request lost", refundInDoubt(testkit.LostRequest, false)},
		{"leases=process: a refund without an answer is in doubt, the answer lost",
			refundInDoubt(testkit.LostAnswer, true)},
		{"leases=process: a refund without an answer is in doubt, the request lost",
			refundInDoubt(testkit.LostRequest, true)},
		{"a refund with an answer is not in doubt", refundAnswered},
		{"double refunds, after the process has changed the limits", refundAfterChange(false)},
		{"leases=process: double refunds, after the process has changed the limits", refundAfterChange(true)},
		{"E1: leftovers of an entity", entityLeftovers},
		{"P1: leftovers of a namespace", namespaceLeftovers},
	}
}

// cancelledMidway checks that a caller that leaves while the write is in flight gets no lease, and
// nothing stays charged.
func cancelledMidway(cascade bool) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(noRefill("n", 100))
		if cascade {
			w.family(testEntity, "parent")
		}
		arrived, answer := make(chan struct{}, 8), make(chan struct{})
		var holding atomic.Bool
		p := w.hooked(processOptions{}, &wrong{
			send: func(_ context.Context, u *bucketUpdate, send func() error) error {
				err := send()
				if holding.Load() && u.kind() == "speculative" {
					arrived <- struct{}{}
					<-answer
				}
				return err
			},
		})
		p.admit(testEntity, weir.Costs{"n": 10})
		holding.Store(true)
		ctx, cancel := context.WithCancel(w.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := p.Reserve(ctx, &weir.Request{
				Entity: testEntity, Resource: testResource, Costs: weir.Costs{"n": 20},
			})
			failed <- err
		}()
		<-arrived
		cancel()
		err := <-failed
		holding.Store(false)
		close(answer)
		p.quiet()
		if !errors.Is(err, weir.Unavailable) && !errors.Is(err, context.Canceled) {
			w.Errorf("got %v, want the end of the context", err)
		}
		for _, e := range []string{testEntity, "parent"}[:1+btoi(cascade)] {
			equal(w, e+": left", w.stored(e, 0, "n").Balance, 90_000)
			equal(w, e+": consumed", w.stored(e, 0, "n").Consumed, 10_000)
		}
		equal(w, "admitted", p.drain(testEntity, "n", 200), 90)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hooked opens a process with a hook of the test between it and the table, besides the world's
// fault.
func (w *tableWorld) hooked(o processOptions, hook *wrong) *process {
	w.Helper()
	o.store.Client = append(o.store.Client, hook.install)
	return w.process(o)
}

// faulty opens a process whose calls fail while the switch is on.
func (w *tableWorld) faulty(o processOptions, f testkit.Fault) (p *process, broken *atomic.Bool) {
	w.Helper()
	return w.faultyIn(o, f, "")
}

// faultyRefunds opens a process whose calls of one operation, or of any if it is empty, fail while
// the switch is on. If the process keeps leases in the table, only its writes of bucket items fail.
func (w *tableWorld) faultyRefunds(
	o processOptions, f testkit.Fault, operation string,
) (p *process, broken *atomic.Bool) {
	w.Helper()
	match := func(r *testkit.FaultRequest) bool {
		return (operation == "" || r.Operation == operation) &&
			(o.store.ProcessLeases || bytes.Contains(r.Body, []byte("/BUCKET#")))
	}
	return w.faultyIf(o, f, match)
}

// faultyIn opens a process whose calls of one operation, or of any if it is empty, fail while the
// switch is on.
func (w *tableWorld) faultyIn(
	o processOptions, f testkit.Fault, operation string,
) (p *process, broken *atomic.Bool) {
	w.Helper()
	return w.faultyIf(o, f, func(r *testkit.FaultRequest) bool {
		return operation == "" || r.Operation == operation
	})
}

// faultyIf opens a process whose calls that match fail while the switch is on.
func (w *tableWorld) faultyIf(
	o processOptions, f testkit.Fault, match func(r *testkit.FaultRequest) bool,
) (p *process, broken *atomic.Bool) {
	w.Helper()
	broken = &atomic.Bool{}
	faults := testkit.NewFaults(&testkit.FaultOptions{Rules: []testkit.FaultRule{{
		Fault: f, PerMille: 1000, Match: func(r *testkit.FaultRequest) bool {
			return broken.Load() && match(r)
		},
	}}})
	o.store.HTTP = faults.HTTPClient()
	return w.process(o), broken
}

// storeGone checks that no process counts on its own while the table does not answer. Denials stay
// denials.
func storeGone(policy weir.Policy) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(noRefill("n", 10))
		p, broken := w.faulty(processOptions{limiter: limiter.Options{OnUnavailable: policy}}, testkit.NoConnection)
		live := p.admit(testEntity, weir.Costs{"n": 3})
		p.admit(testEntity, weir.Costs{"n": 6})
		broken.Store(true)
		for _, c := range []weir.Costs{{"n": 1}, {"n": 1}, {"n": 5}} { // fits, fits, does not fit
			l, err := p.ask(testEntity, c)
			switch {
			case policy == weir.Block && !errors.Is(err, weir.Unavailable):
				w.Errorf("%v: got %v, want unavailable", c, err)
			case policy == weir.Allow && (err != nil || !l.Degraded):
				w.Errorf("%v: got %v, want a degraded lease", c, err)
			}
		}
		if _, err := p.ask("stranger", weir.Costs{"n": 1}); policy == weir.Block && !errors.Is(err, weir.Unavailable) {
			w.Errorf("a stranger: got %v, want unavailable", err)
		}
		if _, err := live.Cancel(w.Context()); !errors.Is(err, weir.Unavailable) {
			w.Errorf("cancel: got %v, want unavailable", err)
		}
		broken.Store(false)
		p.quiet()
		equal(w, "left", w.stored(testEntity, 0, "n").Balance, 1000)
		p.must(live.Cancel(w.Context()))
		equal(w, "left after the refund", w.stored(testEntity, 0, "n").Balance, 4000)
		p.deny(testEntity, weir.Costs{"n": 5})
		p.admit(testEntity, weir.Costs{"n": 4})
	}
}

// failedComplete checks that an overrun that could not be written is an error, and counts when the
// call is repeated.
func failedComplete(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, broken := w.faulty(processOptions{}, testkit.NoConnection)
	l := p.admit(testEntity, weir.Costs{"n": 10})
	broken.Store(true)
	for range 2 {
		if _, err := l.Complete(w.Context(), weir.Costs{"n": 130}); !errors.Is(err, weir.Unavailable) {
			w.Errorf("complete: got %v, want unavailable", err)
		}
	}
	broken.Store(false)
	p.must(l.Complete(w.Context(), weir.Costs{"n": 130}))
	p.must(l.Complete(w.Context(), weir.Costs{"n": 130}))
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, -30_000)
	equal(w, "consumed", w.stored(testEntity, 0, "n").Consumed, 130_000)
	w.process().deny(testEntity, weir.Costs{"n": 0})
}

// unansweredCharge checks that a charge whose answer is lost is made once or not at all, is not
// reported as made, and is counted as ambiguous.
func unansweredCharge(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, broken := w.faulty(processOptions{}, testkit.LostAnswer)
	p.admit(testEntity, weir.Costs{"n": 10})
	broken.Store(true)
	l, err := p.ask(testEntity, weir.Costs{"n": 20})
	if l != nil || !errors.Is(err, weir.Unavailable) {
		w.Errorf("got %v, %v, want unavailable", l != nil, err)
	}
	broken.Store(false)
	over := 90_000 - w.stored(testEntity, 0, "n").Balance
	counted := p.store.Stats().AmbiguousMilli
	w.Logf("%d milli-units are over-charged, %d counted", over, counted)
	if over < 0 || over > counted || counted != 20_000 {
		w.Errorf("%d milli-units are over-charged and %d counted, want at most 20000 and 20000", over, counted)
	}
	equal(w, "admitted", int64(p.drain(testEntity, "n", 200))*1000, 90_000-over)
}

// unansweredRefund checks that a refund that may have been made is not made again.
func unansweredRefund(w *tableWorld) {
	w.system(noRefill("n", 100))
	p, broken := w.faulty(processOptions{}, testkit.LostAnswer)
	first := p.admit(testEntity, weir.Costs{"n": 30})
	p.admit(testEntity, weir.Costs{"n": 60})
	broken.Store(true)
	_, err := first.Cancel(w.Context())
	p.quiet()
	broken.Store(false)
	for range 3 {
		if _, again := first.Cancel(w.Context()); again != nil {
			w.Errorf("cancel: got %v and then %v", err, again)
		}
		p.quiet()
	}
	balance := w.stored(testEntity, 0, "n").Balance
	if balance > 40_000 {
		w.Errorf("the balance is %d, want at most 40000: given back twice", balance)
	}
	if missing := 40_000 - balance; missing > p.store.Stats().AmbiguousMilli {
		w.Errorf("%d milli-units are missing, and %d were counted", missing, p.store.Stats().AmbiguousMilli)
	}
}

// settlements returns the three verbs that refund a part or all of a lease of 30 units.
func settlements() map[string]func(ctx context.Context, l *weir.Lease) (*weir.Receipt, error) {
	return map[string]func(ctx context.Context, l *weir.Lease) (*weir.Receipt, error){
		"adjust": func(ctx context.Context, l *weir.Lease) (*weir.Receipt, error) {
			return l.Adjust(ctx, weir.Costs{"n": 10})
		},
		"complete": func(ctx context.Context, l *weir.Lease) (*weir.Receipt, error) {
			return l.Complete(ctx, weir.Costs{"n": 10})
		},
		"cancel": func(ctx context.Context, l *weir.Lease) (*weir.Receipt, error) { return l.Cancel(ctx) },
	}
}

// refundInDoubt checks that a settlement reports its refund as in doubt if the answer to the write
// was lost, whether or not the write was applied, that each later answer about the lease does so
// too, and that the refund is never made twice.
func refundInDoubt(f testkit.Fault, process bool) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(noRefill("n", 1000))
		p, broken := w.faultyRefunds(processOptions{store: Options{ProcessLeases: process}}, f, "")
		p.admit(testEntity, weir.Costs{"n": 100})
		for verb, settle := range settlements() {
			l := p.admit(testEntity, weir.Costs{"n": 30})
			p.quiet()
			before := w.stored(testEntity, 0, "n").Balance
			broken.Store(true)
			receipt, err := settle(w.Context(), l)
			p.quiet()
			broken.Store(false)
			if err != nil || !receipt.RefundInDoubt {
				w.Errorf("%s: got %+v, %v, want a refund in doubt", verb, receipt, err)
			}
			var refund int64
			if f == testkit.LostAnswer { // the write was applied
				refund = map[string]int64{"adjust": 20_000, "complete": 20_000, "cancel": 30_000}[verb]
			}
			if verb == "adjust" {
				receipt, err = l.Complete(w.Context(), weir.Costs{"n": 10})
				if err != nil || !receipt.RefundInDoubt {
					w.Errorf("complete after the adjust: got %+v, %v, want a refund in doubt", receipt, err)
				}
			} else if receipt, err = settle(w.Context(), l); err != nil || !receipt.RefundInDoubt {
				w.Errorf("%s, repeated: got %+v, %v, want a refund in doubt", verb, receipt, err)
			}
			p.quiet()
			equal(w, verb+": given back", w.stored(testEntity, 0, "n").Balance-before, refund)
		}
	}
}

// refundAnswered checks that no refund is in doubt if the table answers, or if the write certainly
// was not sent and the repetition makes the refund.
func refundAnswered(w *tableWorld) {
	w.system(noRefill("n", 1000))
	p, broken := w.faulty(processOptions{}, testkit.NoConnection)
	p.admit(testEntity, weir.Costs{"n": 100})
	for verb, settle := range settlements() {
		for _, fails := range []bool{false, true} {
			l := p.admit(testEntity, weir.Costs{"n": 30})
			if fails {
				broken.Store(true)
				if _, err := settle(w.Context(), l); !errors.Is(err, weir.Unavailable) {
					w.Errorf("%s: got %v, want unavailable", verb, err)
				}
				broken.Store(false)
			}
			receipt, err := settle(w.Context(), l)
			if err != nil || receipt.RefundInDoubt {
				w.Errorf("%s: got %+v, %v, want no doubt", verb, receipt, err)
			}
		}
	}
	p.quiet()
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, 1_000_000-140_000)
}

// refundAfterChange checks that a refund whose answer is lost is not made twice if its write also
// brings the item to limits that this process has changed.
func refundAfterChange(process bool) func(w *tableWorld) {
	return func(w *tableWorld) { w.refundAfterChange(process) }
}

func (w *tableWorld) refundAfterChange(process bool) {
	w.system(noRefill("n", 1000))
	o := processOptions{store: Options{ProcessLeases: process}}
	p, broken := w.faultyRefunds(o, testkit.LostAnswer, "UpdateItem")
	p.admit(testEntity, weir.Costs{"n": 100})
	l := p.admit(testEntity, weir.Costs{"n": 30})
	p.quiet()
	if err := p.SetLimits(w.Context(), weir.Subject{}, []weir.Limit{noRefill("n", 1200)}); err != nil {
		w.Fatalf("set limits: %v", err)
	}
	p.quiet()
	before := w.stored(testEntity, 0, "n").Consumed
	broken.Store(true)
	receipt, err := l.Cancel(w.Context())
	broken.Store(false)
	if err != nil || !receipt.RefundInDoubt {
		w.Errorf("cancel: got %+v, %v, want a refund in doubt", receipt, err)
	}
	p.must(l.Cancel(w.Context()))
	p.quiet()
	equal(w, "given back", before-w.stored(testEntity, 0, "n").Consumed, 30_000)
}

// entityLeftovers checks that nothing is left of a deleted entity except its audit, and a lease
// that outlives it creates no item.
func entityLeftovers(w *tableWorld) {
	at := weir.Subject{Entity: testEntity, Resource: testResource}
	w.limits(at, noRefill("n", 100))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	w.edit(testEntity, 0, map[string]int64{schema.AttrShardCount: 4})
	for range 50 {
		p.admit(testEntity, weir.Costs{"n": 1})
	}
	equal(w, "shards", len(w.shards(testEntity)), 4)
	l := p.admit(testEntity, weir.Costs{"n": 5})
	over := p.admit(testEntity, weir.Costs{"n": 5})
	if err := w.eye.DeleteEntity(w.Context(), testEntity); err != nil {
		w.Fatalf("delete: %v", err)
	}
	p.must(l.Cancel(w.Context()))
	_, _ = over.Complete(w.Context(), weir.Costs{"n": 1})
	p.quiet()
	for _, item := range w.items() {
		key := client.TextOf(item, schema.AttrPK) + " " + client.TextOf(item, schema.AttrSK)
		if strings.Contains(key, testEntity) && !strings.Contains(key, "/AUDIT#") {
			w.Errorf("%s is left", key)
		}
		if strings.HasSuffix(key, schema.SKEntityConfigResources) && item[testResource] != nil {
			w.Errorf("the registry still counts an entity: %v", item)
		}
	}
}

// namespaceLeftovers checks that a purge leaves no items, whatever program wrote them.
func namespaceLeftovers(w *tableWorld) {
	w.limits(weir.Subject{Entity: testEntity, Resource: testResource}, noRefill("n", 100))
	w.system(noRefill("n", 100))
	w.family("child", "top")
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 5})
	p.admit("child", weir.Costs{"n": 5})
	if n := len(w.items()); n < 8 {
		w.Fatalf("%d items before the purge", n)
	}
	if _, err := w.table.DeleteNamespace(w.Context(), w.space); err != nil {
		w.Fatalf("delete: %v", err)
	}
	if _, err := w.table.PurgeNamespace(w.Context(), w.eye.store.config.Namespace, false, nil); err != nil {
		w.Fatalf("purge: %v", err)
	}
	for _, item := range w.items() {
		w.Errorf("%v %v is left", item[schema.AttrPK], item[schema.AttrSK])
	}
}
