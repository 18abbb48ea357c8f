package livetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// ending is how a lease ended: with the units used, or cancelled.
type ending struct {
	id      weir.LeaseID
	entity  string
	costs   weir.Costs
	actuals weir.Costs // nil for a cancel
	at      time.Time  // the receipt's
	never   bool       // the reservation was denied, and the ID was then cancelled
}

// complaints are the unexpected answers, by what is wrong.
type complaints struct {
	mu    sync.Mutex
	count map[string]int
	first map[string]string // the lease of the first one
}

// add adds an unexpected answer about a lease.
func (c *complaints) add(lease, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count, c.first = make(map[string]int), make(map[string]string)
	}
	what := fmt.Sprintf(format, args...)
	c.count[what]++
	if c.count[what] == 1 {
		c.first[what] = lease
	}
}

// caller makes calls through the proxy, one after another. It logs each call when its lease has
// ended.
type caller struct {
	service weir.Service
	offer   *Spec
	log     *Log
	wrong   *complaints
	denied  *atomic.Int64
	random  *rand.Rand
	ids     idMaker
	// ended are the leases that this caller has ended, and open the records of those that it keeps.
	ended []ending
	open  []*openCall
}

// openCall is a call whose lease is live.
type openCall struct {
	id     weir.LeaseID
	record *Record
	seq    int64
}

// idMaker makes lease IDs, eight in a row that differ in their last three bits, as the HTTP client
// does.
type idMaker struct {
	id   weir.LeaseID
	made int
}

func (m *idMaker) next() weir.LeaseID {
	const row = 8
	if m.made%row == 0 {
		m.id = weir.NewLeaseID(time.Now())
	}
	id := m.id
	id[len(id)-1] = id[len(id)-1]&^(row-1) | byte(m.made%row)
	m.made++
	return id
}

// run makes calls until stop is closed.
func (c *caller) run(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
			c.call(ctx)
		}
	}
}

// definite repeats a call as it is until it has an answer other than an unknown outcome.
func definite[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for {
		got, err := call()
		if ctx.Err() != nil || !errors.Is(err, weir.Unavailable) && !errors.Is(err, weir.Overloaded) {
			return got, err
		}
	}
}

// call reserves, changes the lease now and then, and mostly ends it.
func (c *caller) call(ctx context.Context) {
	w := worker{Process: &Process{Spec: c.offer}, random: c.random}
	planned := w.draw()
	if o := c.reserve(ctx, planned.entity, planned.costs); o != nil {
		c.use(ctx, o, planned)
	}
}

// keep reserves, and completes with what was reserved.
func (c *caller) keep(ctx context.Context, entity string, costs weir.Costs) {
	if o := c.reserve(ctx, entity, costs); o != nil {
		c.end(ctx, c.service, o, Keep, costs)
		c.log.Add(o.record)
	}
}

// reserve reserves, and returns nil if it was not admitted.
func (c *caller) reserve(ctx context.Context, entity string, costs weir.Costs) *openCall {
	o := &openCall{id: c.ids.next()}
	o.record = &Record{
		Kind: Call, Entity: entity, Resource: c.offer.Resource, Costs: costs,
		Lease: o.id.String(), Verdict: Failed, Before: micros(),
	}
	_, err := definite(ctx, func() (*weir.Lease, error) { return c.service.Reserve(ctx, o.request()) })
	o.record.After = micros()
	_, denied := errors.AsType[*weir.DeniedError](err)
	switch {
	case denied:
		o.record.Verdict = Denied
		c.denied.Add(1)
		c.withdraw(ctx, o)
		return nil
	case err != nil:
		o.record.Err = err.Error()
		c.log.Add(o.record)
		c.wrong.add(o.record.Lease, "reserve: %s", reason(err))
		return nil
	}
	o.record.Verdict = Admitted
	return o
}

// request is the request of a call.
func (o *openCall) request() *weir.Request {
	return &weir.Request{
		LeaseID: o.id, Entity: o.record.Entity, Resource: o.record.Resource, Costs: o.record.Costs,
	}
}

// withdraw cancels an ID whose reservation was denied, because another server may receive the same
// reservation later and admit it.
func (c *caller) withdraw(ctx context.Context, o *openCall) {
	c.log.Add(o.record)
	_, err := definite(ctx, func() (*weir.Receipt, error) { return c.service.Cancel(ctx, o.id) })
	if err != nil && !errors.Is(err, weir.UnknownLease) {
		c.wrong.add(o.record.Lease, "cancel after a denial: %s", reason(err))
		return
	}
	c.ended = append(c.ended, ending{
		id: o.id, entity: o.record.Entity, costs: o.record.Costs, never: true,
	})
}

// use works with a lease.
func (c *caller) use(ctx context.Context, o *openCall, planned *plannedCall) {
	for _, by := range [][2]int64{{150, 100}, {50, 100}} {
		if c.random.IntN(adjustOneIn) == 0 {
			c.adjust(ctx, o, by, false)
		}
	}
	if planned.way != Keep && until(ctx, micros()+planned.hold.Microseconds()) != nil {
		return
	}
	if c.random.IntN(extendOneIn) == 0 {
		c.extend(ctx, o)
	}
	if c.random.IntN(keepOneIn) == 0 {
		c.open = append(c.open, o)
		return
	}
	switch c.random.IntN(contestOneIn) {
	case 0:
		c.contest(ctx, o, planned.totals)
	case 1:
		var adjusting sync.WaitGroup
		adjusting.Go(func() { c.adjust(ctx, o, [2]int64{150, 100}, true) })
		c.end(ctx, c.service, o, planned.way, planned.totals)
		adjusting.Wait()
	default:
		c.end(ctx, c.service, o, planned.way, planned.totals)
	}
	c.log.Add(o.record)
}

// These are n if one in n leases is adjusted, is extended, is kept to the end of the run, and is
// ended by two calls at the same time.
const (
	adjustOneIn  = 6
	extendOneIn  = 6
	keepOneIn    = 8
	contestOneIn = 12
)

// adjust makes a lease stand for a fraction of its costs. If the lease is being ended at the same
// time, the adjust may be too late.
func (c *caller) adjust(ctx context.Context, o *openCall, by [2]int64, ending bool) {
	totals := maps.Clone(o.record.Costs)
	for name := range totals {
		totals[name] = totals[name] * by[0] / by[1]
	}
	o.seq++
	change := Settled{Totals: totals, Before: micros()}
	_, err := definite(ctx, func() (*weir.Receipt, error) {
		return c.service.Adjust(ctx, o.id, o.seq, []weir.Costs{totals})
	})
	change.After = micros()
	// An adjust that was too late may have been applied nevertheless, if an earlier answer was lost.
	if err != nil && (!ending || !errors.Is(err, weir.Ended)) {
		c.wrong.add(o.record.Lease, "adjust: %s", reason(err))
		return
	}
	o.record.Adjusts = append(o.record.Adjusts, change)
}

func (c *caller) extend(ctx context.Context, o *openCall) {
	_, err := definite(ctx, func() (*weir.Receipt, error) { return c.service.Extend(ctx, o.id) })
	if err != nil {
		c.wrong.add(o.record.Lease, "extend: %s", reason(err))
	}
}

// end ends a lease in one of the ways. The call has used its units, whether or not a server accepts
// the settlement.
func (c *caller) end(ctx context.Context, at weir.Service, o *openCall, way string, totals weir.Costs) {
	settled := &Settled{Totals: totals, Before: micros()}
	actuals := totals
	if way == Cancel {
		actuals = nil
	}
	got, err := settle(ctx, at, o.id, actuals)
	settled.After = micros()
	o.record.Settled = settled
	if err != nil {
		c.wrong.add(o.record.Lease, "%s: %s", verbOf(actuals), reason(err))
		return
	}
	c.done(o, actuals, got)
}

// contest completes a lease and cancels it at the same time. One of the two must be refused.
func (c *caller) contest(ctx context.Context, o *openCall, totals weir.Costs) {
	settled := &Settled{Totals: totals, Before: micros()}
	var cancelling sync.WaitGroup
	var cancelled *weir.Receipt
	var refused error
	cancelling.Go(func() { cancelled, refused = settle(ctx, c.service, o.id, nil) })
	completed, err := settle(ctx, c.service, o.id, totals)
	cancelling.Wait()
	settled.After = micros()
	o.record.Settled = settled
	switch {
	case err == nil && errors.Is(refused, weir.Conflict):
		c.done(o, totals, completed)
	case refused == nil && errors.Is(err, weir.Conflict):
		settled.Totals = totalsOf(o.record.Costs, Cancel, 0)
		c.done(o, nil, cancelled)
	default:
		c.wrong.add(o.record.Lease, "complete beside a cancel: got %q and %q", codeOf(err), codeOf(refused))
	}
}

// done notes that a lease has ended.
func (c *caller) done(o *openCall, actuals weir.Costs, got *weir.Receipt) {
	c.ended = append(c.ended, ending{
		id: o.id, entity: o.record.Entity, costs: o.record.Costs, actuals: actuals, at: got.At,
	})
}

// settle completes a lease with the actuals, or cancels it if they are nil.
func settle(
	ctx context.Context, at weir.Service, id weir.LeaseID, actuals weir.Costs,
) (*weir.Receipt, error) {
	return definite(ctx, func() (*weir.Receipt, error) {
		if actuals == nil {
			return at.Cancel(ctx, id)
		}
		return at.Complete(ctx, id, []weir.Costs{actuals})
	})
}

func verbOf(actuals weir.Costs) weir.Verb {
	if actuals == nil {
		return weir.VerbCancel
	}
	return weir.VerbComplete
}

// reason returns what an unexpected answer has in common with others.
func reason(err error) string {
	if e, ok := errors.AsType[*weir.Error](err); ok && e.Code != weir.Unavailable {
		what, _, _ := strings.Cut(e.Reason, " at ") // without the time
		return string(e.Code) + " " + what
	}
	return err.Error()
}

// endings returns the leases that callers have ended.
func endings(all []*caller) []ending {
	var e []ending
	for _, c := range all {
		e = append(e, c.ended...)
	}
	slices.SortFunc(e, func(a, b ending) int { return slices.Compare(a.id[:], b.id[:]) })
	return e
}
