package conformance_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
)

// fickle is a store that uses its leeway as often as it can.
type fickle struct {
	*less
	lee   conformance.Leeway
	takes bool // takes what it denies as contended
	loses bool // keeps what it should give back
	calls atomic.Int64
}

// wrap wraps a store.
func (f *fickle) wrap(s *less) driver.Store {
	return &fickle{less: s, lee: f.lee, takes: f.takes, loses: f.loses}
}

func (f *fickle) Reserve(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	const many = 90 // most of the concurrent calls, so that the others do not fill a limit of 100
	n := f.calls.Add(1)
	if f.lee.MayContend && n <= many {
		if f.takes {
			if err := f.less.Reserve(ctx, now, p, p.Outcome()); err != nil {
				return err
			}
		}
		*out = driver.Outcome{At: now.Truncate(time.Millisecond), Denied: true, Contended: true}
		return nil
	}
	if f.lee.NotAtomicAcrossEntities {
		if err := f.takeAndGiveBack(ctx, now, p); err != nil {
			return err
		}
	}
	return f.less.Reserve(ctx, now, p, out)
}

// takeAndGiveBack takes a reservation on several entities and gives it back, so that other calls
// see it for a moment.
func (f *fickle) takeAndGiveBack(ctx context.Context, now time.Time, p *driver.Plan) error {
	if !slices.ContainsFunc(p.Takes, func(t *driver.Take) bool { return t.Subject != p.Takes[0].Subject }) {
		return nil // a reservation on one entity is atomic
	}
	early := *p
	early.ID = weir.NewLeaseID(now)
	out := early.Outcome()
	if err := f.Store.Reserve(ctx, now, &early, out); err != nil || out.Denied {
		return err
	}
	holdings := early.Holdings(out)
	back := &driver.Update{ID: early.ID, Verb: weir.VerbCancel}
	for i := range holdings {
		h := &holdings[i]
		none := make([]driver.Part, len(h.Parts))
		for j := range none {
			none[j].Charge = h.Parts[j].Charge
		}
		back.Changes = append(back.Changes, driver.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: none})
	}
	for range 20 {
		runtime.Gosched()
	}
	if f.loses {
		return nil
	}
	return f.Store.Update(ctx, now, back, back.Outcome())
}

// atOnce checks that concurrent calls are linearizable.
func atOnce(t conformance.T, h conformance.Harness) {
	conformance.Linearizable(t, h,
		conformance.Load{Seed: 1, Histories: 5, Goroutines: 8, Calls: 100})
}

// races returns a function that plays the cases whose titles contain name.
func races(name string) func(conformance.T, conformance.Harness) {
	return func(t conformance.T, h conformance.Harness) {
		for _, c := range conformance.Cases() {
			if strings.Contains(c.Title(), name) && c.LeftOut(&h) == "" {
				c.Run(t, h)
			}
		}
	}
}

// TestLeewayIsNoExcuse checks that with a leeway the suites still find mistakes that the leeway
// does not allow.
func TestLeewayIsNoExcuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		does *fickle
		run  func(conformance.T, conformance.Harness)
	}{
		{"what is contended is taken, in histories",
			&fickle{lee: conformance.Leeway{MayContend: true}, takes: true}, atOnce},
		{"what is contended is taken, on one limit",
			&fickle{lee: conformance.Leeway{MayContend: true}, takes: true},
			races("pass a limit: bucket")},
		{"what is to be given back is lost",
			&fickle{lee: conformance.Leeway{NotAtomicAcrossEntities: true}, loses: true},
			races("pass a parent's limit")},
		{"what is to be given back is lost, over several charges",
			&fickle{lee: conformance.Leeway{NotAtomicAcrossEntities: true}, loses: true},
			races("opposite order")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := conformance.StoreHarness{Open: openLess(c.does.wrap), Leeway: lessLeeway()}
			r := conformance.Record(t, func(t conformance.T) { c.run(t, h.Service(t)) })
			if !r.Failed {
				t.Error("it was not found")
			}
		})
	}
}

// TestLeewayOfStores checks that a store that uses a leeway passes with it, and not without it.
func TestLeewayOfStores(t *testing.T) {
	t.Parallel()
	// Each row names the part of the suite that the leeway affects.
	random := func(t conformance.T, h conformance.Harness) {
		if d := conformance.FirstDifference(t, h, 1, 4000); d != "" {
			t.Errorf("%s", d)
		}
	}
	contends := conformance.Leeway{MayContend: true}
	for _, c := range []struct {
		name string
		does conformance.Leeway
		run  func(conformance.T, conformance.Harness)
	}{
		{"periods of whole seconds", conformance.Leeway{WholeSeconds: true}, random},
		{"contends, in histories", contends, atOnce},
		{"contends, on one limit", contends, races("pass a limit: bucket")},
		{"contends, on a parent", contends, races("pass a parent's limit")},
		{"compensates, in histories", conformance.Leeway{NotAtomicAcrossEntities: true}, atOnce},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play := func(lee conformance.Leeway) conformance.Result {
				// The store must keep to this as well.
				lee.WholeSeconds = lee.WholeSeconds || !c.does.WholeSeconds
				does := &fickle{lee: c.does}
				h := conformance.StoreHarness{Open: openLess(does.wrap), Leeway: lee}
				return conformance.Record(t, func(t conformance.T) { c.run(t, h.Service(t)) })
			}
			if r := play(c.does); r.Failed {
				t.Errorf("with the leeway: %s", strings.Join(r.Messages, "\n"))
			}
			if r := play(conformance.Leeway{}); !r.Failed {
				t.Error("without the leeway: nothing failed")
			}
		})
	}
}
