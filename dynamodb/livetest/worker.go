package livetest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// Process is one process of a live test.
type Process struct {
	Spec    *Spec
	Service weir.Service
	Log     *Log
	// Act does one of the spec's actions. The record holds the action, and gets its times from the
	// caller.
	Act func(ctx context.Context, a *Action, r *Record) error
}

// Run makes the calls of the spec from start on (Unix microseconds), and logs the answers. It
// returns when every call has ended.
func (p *Process) Run(ctx context.Context, start int64) error {
	w := &worker{Process: p, random: rand.New(rand.NewPCG(p.Spec.Seed, 0))}
	failed := make(chan error, len(p.Spec.Actions))
	for i := range p.Spec.Actions {
		w.all.Go(func() { failed <- w.act(ctx, start, &p.Spec.Actions[i]) })
	}
	err := w.offer(ctx, start)
	w.all.Wait()
	for range p.Spec.Actions {
		err = errors.Join(err, <-failed)
	}
	w.end.Kind = End
	p.Log.Add(&w.end)
	return err
}

// worker is the state of a running process. One goroutine draws its calls.
type worker struct {
	*Process

	random *rand.Rand
	slots  chan struct{} // one for each call in flight
	all    sync.WaitGroup
	end    Record
}

// offer starts each call at its time, whether or not the earlier ones have ended.
func (w *worker) offer(ctx context.Context, start int64) error {
	w.slots = make(chan struct{}, w.Spec.Inflight)
	const second = 1_000_000
	interval := int64(second / w.Spec.Rate)
	for i := range int64(w.Spec.Rate * w.Spec.Seconds) {
		due := start + i*second/int64(w.Spec.Rate) + w.random.Int64N(interval)
		if err := until(ctx, due); err != nil {
			return err
		}
		w.end.LateUS = max(w.end.LateUS, micros()-due)
		w.end.Offered++
		c := w.draw()
		select {
		case w.slots <- struct{}{}:
			w.all.Go(func() {
				w.call(ctx, c)
				<-w.slots
			})
		default:
			w.end.Dropped++
		}
	}
	return nil
}

// plannedCall is one call as it was drawn.
type plannedCall struct {
	entity        string
	costs, totals map[string]int64
	way           string
	hold          time.Duration
}

func (w *worker) draw() *plannedCall {
	c := &plannedCall{
		entity: w.Spec.Entities[w.random.IntN(len(w.Spec.Entities))],
		costs:  make(map[string]int64),
		way:    w.drawWay(),
	}
	least, most := w.Spec.HoldMS[0], w.Spec.HoldMS[1]
	c.hold = time.Duration(least+w.random.IntN(most-least+1)) * time.Millisecond
	for _, name := range slices.Sorted(maps.Keys(w.Spec.Costs)) {
		choices := w.Spec.Costs[name]
		c.costs[name] = choices[w.random.IntN(len(choices))]
	}
	c.totals = totalsOf(c.costs, c.way, w.Spec.AdjustPercent)
	return c
}

// totalsOf returns the units that a call consumes that ends in one of the ways.
func totalsOf(costs map[string]int64, way string, percent int64) map[string]int64 {
	totals := make(map[string]int64, len(costs))
	for name, cost := range costs {
		switch by := cost * percent / 100; way {
		case Up:
			totals[name] = cost + by
		case Down:
			totals[name] = cost - by
		case Cancel:
			totals[name] = 0
		default:
			totals[name] = cost
		}
	}
	return totals
}

func (w *worker) drawWay() string {
	ways, sum := []string{Keep, Up, Down, Cancel}, 0
	for _, way := range ways {
		sum += w.Spec.Mix[way]
	}
	n := w.random.IntN(sum)
	at := slices.IndexFunc(ways, func(way string) bool {
		n -= w.Spec.Mix[way]
		return n < 0
	})
	return ways[at]
}

// call reserves, waits for the duration of the call, settles, and logs all of it.
func (w *worker) call(ctx context.Context, c *plannedCall) {
	r := &Record{
		Kind: Call, Entity: c.entity, Resource: w.Spec.Resource, Costs: c.costs,
		Verdict: Failed, Before: micros(),
	}
	lease, err := w.Service.Reserve(ctx, &weir.Request{
		Entity: c.entity, Resource: w.Spec.Resource, Costs: c.costs,
	})
	r.After = micros()
	switch _, denied := errors.AsType[*weir.DeniedError](err); {
	case denied:
		r.Verdict = Denied
	case err != nil:
		r.Err = err.Error()
	case lease.Degraded:
		r.Err = "degraded"
	default:
		r.Verdict = Admitted
		w.settle(ctx, lease, c, r)
	}
	w.Log.Add(r)
}

// settle ends an admitted call in the way that was drawn.
func (w *worker) settle(ctx context.Context, lease *weir.Lease, c *plannedCall, r *Record) {
	if c.way == Keep {
		if _, err := lease.Complete(ctx); err != nil {
			r.Settled = &Settled{Totals: c.totals, Before: r.After, After: micros(), Err: err.Error()}
		}
		return
	}
	err := until(ctx, micros()+c.hold.Microseconds())
	r.Settled = &Settled{Totals: c.totals, Before: micros()}
	switch {
	case err != nil: // it stays charged as reserved
	case c.way == Cancel:
		_, err = lease.Cancel(ctx)
	case c.way == Up:
		if _, err = lease.Adjust(ctx, c.totals); err == nil {
			_, err = lease.Complete(ctx)
		}
	default:
		_, err = lease.Complete(ctx, c.totals)
	}
	r.Settled.After = micros()
	if err != nil {
		r.Settled.Err = err.Error()
	}
}

// act does an action at its time.
func (w *worker) act(ctx context.Context, start int64, a *Action) error {
	if err := until(ctx, start+a.AtMS*1000); err != nil {
		return err
	}
	r := &Record{
		Kind: a.Do, Entity: a.Entity, Resource: w.Spec.Resource, Set: a.Limits, Before: micros(),
	}
	if err := w.Act(ctx, a, r); err != nil {
		return err
	}
	r.After = micros()
	w.Log.Add(r)
	return nil
}

// until waits until an instant in Unix microseconds.
func until(ctx context.Context, at int64) error {
	timer := time.NewTimer(time.Duration(at-micros()) * time.Microsecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// micros returns the time in Unix microseconds.
func micros() int64 { return time.Now().UnixMicro() }
