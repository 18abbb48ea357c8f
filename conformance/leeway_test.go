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

// leewayStore is a store that uses its leeway as often as it can.
type leewayStore struct {
	*minimalStore
	lee   conformance.Leeway
	takes bool // takes what it denies as contended
	loses bool // keeps what it should give back
	calls atomic.Int64
}

// wrap wraps a store.
func (f *leewayStore) wrap(s *minimalStore) driver.Store {
	return &leewayStore{minimalStore: s, lee: f.lee, takes: f.takes, loses: f.loses}
}

func (f *leewayStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	// Eight callers that stop after five denials each are admitted ten times and contend forty
	// times, so that they do not fill a limit of 100.
	const admitted, contended = 10, 40
	n := f.calls.Add(1)
	if f.lee.MayContend && n > admitted && n <= admitted+contended {
		if f.takes {
			if err := f.minimalStore.Reserve(ctx, now, p, p.Outcome()); err != nil {
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
	return f.minimalStore.Reserve(ctx, now, p, out)
}

// takeAndGiveBack takes a reservation on several entities and gives it back, so that other calls
// see it for a moment.
func (f *leewayStore) takeAndGiveBack(ctx context.Context, now time.Time, p *driver.Plan) error {
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

// checkConcurrentCalls checks that concurrent calls are linearizable.
func checkConcurrentCalls(t conformance.T, h conformance.Harness) {
	conformance.Linearizable(t, h,
		conformance.Load{Seed: 1, Histories: 5, Goroutines: 8, Calls: 100})
}

// runCasesNamed returns a function that plays the cases whose titles contain name.
func runCasesNamed(name string) func(conformance.T, conformance.Harness) {
	return func(t conformance.T, h conformance.Harness) {
		for _, c := range conformance.Cases() {
			if strings.Contains(c.Title(), name) && c.LeftOut(&h) == "" {
				c.Run(t, h)
			}
		}
	}
}

// TestLeewayHidesNoOtherMistake checks that with a leeway the suites still find mistakes that the
// leeway does not allow.
func TestLeewayHidesNoOtherMistake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		does *leewayStore
		run  func(conformance.T, conformance.Harness)
	}{
		{"what is contended is taken, in histories",
			&leewayStore{lee: conformance.Leeway{MayContend: true}, takes: true}, checkConcurrentCalls},
		{"what is contended is taken, on one limit",
			&leewayStore{lee: conformance.Leeway{MayContend: true}, takes: true},
			runCasesNamed("pass a limit: bucket")},
		{"what is to be given back is lost",
			&leewayStore{lee: conformance.Leeway{NotAtomicAcrossEntities: true}, loses: true},
			runCasesNamed("pass a parent's limit")},
		{"what is to be given back is lost, over several charges",
			&leewayStore{lee: conformance.Leeway{NotAtomicAcrossEntities: true}, loses: true},
			runCasesNamed("opposite order")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := conformance.StoreHarness{Open: openMinimalStore(c.does.wrap), Leeway: minimalLeeway()}
			r := conformance.Record(t, func(t conformance.T) { c.run(t, h.Service(t)) })
			if !r.Failed {
				t.Error("it was not found")
			}
		})
	}
}

// TestStoreNeedsItsLeeway checks that a store that uses a leeway passes with it, and not without
// it.
func TestStoreNeedsItsLeeway(t *testing.T) {
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
		{"contends, in histories", contends, checkConcurrentCalls},
		{"contends, on one limit", contends, runCasesNamed("pass a limit: bucket")},
		{"contends, on a parent", contends, runCasesNamed("pass a parent's limit")},
		{"compensates, in histories", conformance.Leeway{NotAtomicAcrossEntities: true}, checkConcurrentCalls},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play := func(lee conformance.Leeway) conformance.Result {
				// The store must keep to this as well.
				lee.WholeSeconds = lee.WholeSeconds || !c.does.WholeSeconds
				does := &leewayStore{lee: c.does}
				h := conformance.StoreHarness{Open: openMinimalStore(does.wrap), Leeway: lee}
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
