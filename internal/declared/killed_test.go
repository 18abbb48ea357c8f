package declared_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/soak"
)

// before and after are files between which every sort of change lies: limits at each level, an
// entity that gets another parent, one that swaps places with its parent, one that is created,
// one that is deleted with its child, the policy and the retention.
const (
	before = `version: 1
system:
  on_unavailable: allow
  retention: {audit_days: 30}
  limits: {rpm: {capacity: 600}, tpm: {capacity: 900}}
resources:
  a: {limits: {rpm: {capacity: 100}}}
  b: {limits: {rpm: {capacity: 100}}}
  c: {limits: {rpm: {capacity: 100}}}
entities:
  top: {}
  mid: {parent: top, resources: {a: {limits: {rpm: {capacity: 50}}}}}
  low: {parent: mid, cascade: true, resources: {_default_: {limits: {rpm: {capacity: 20}}}}}
  old: {resources: {a: {limits: {rpm: {capacity: 5}}}, b: {limits: {rpm: {capacity: 6}}}}}
  old-child: {parent: old, cascade: true, resources: {c: {limits: {rpm: {capacity: 7}}}}}
  same: {resources: {a: {limits: {rpm: {capacity: 8}}}}}
`
	after = `version: 1
system: {on_unavailable: block, retention: {audit_days: 60}, limits: {rpm: {capacity: 601}}}
resources:
  a: {limits: {rpm: {capacity: 100}, tpm: {capacity: 1000, refill_amount: 10}}}
  b: {limits: {rpm: {capacity: 99}}}
  d: {limits: {rpm: {capacity: 100}}}
entities:
  top: {parent: low}
  mid: {parent: top, cascade: true, resources: {a: {limits: {rpm: {capacity: 51}}}}}
  low: {resources: {a: {limits: {rpm: {capacity: 20}}}}}
  new:
    parent: mid
    resources: {b: {limits: {rpm: {capacity: 9}}}, _default_: {limits: {rpm: {capacity: 3}}}}
  same: {resources: {a: {limits: {rpm: {capacity: 8}}}}}
`
)

// prepare applies the first file in a namespace, and uses some buckets.
func (w *world) prepare(namespace string) {
	w.Helper()
	a := w.open("ann", inNamespace(namespace))
	a.apply(before)
	for _, s := range [][2]string{
		{"low", "a"}, {"low", "b"}, {"old-child", "c"}, {"old", "a"}, {"mid", "a"}, {"same", "a"},
	} {
		a.use(s[0], s[1])
	}
}

func inNamespace(name string) func(o *dynamodb.Options) {
	return func(o *dynamodb.Options) { o.Namespace = name }
}

func through(network http.RoundTripper) func(o *dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTP = &http.Client{Transport: network} }
}

// TestKilledApply kills applies at random requests, and applies the file again under another name.
// The table is then as after one apply that was not interrupted: every item, and the audit too,
// which has each change once.
func TestKilledApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.prepare(w.namespace("whole"))
	whole := &lifeline{}
	all := w.open("ann", inNamespace("whole"), through(whole))
	opened := whole.seen
	all.apply(after)
	requests := whole.seen - opened
	want := w.scanned("whole")

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	finished := 0
	runs := soak.Amount(20, 50)
	for run := range runs {
		name := w.namespace(fmt.Sprintf("run-%d", run))
		w.prepare(name)
		at, lost := 1+random.IntN(requests), random.IntN(2) == 0
		if !w.killed(name, at, lost) {
			finished++
		}
		next := w.open("bob", inNamespace(name))
		file := &httpapi.LimitsFile{Text: after, Yes: true, TakeOver: true}
		p, err := next.ApplyLimits(t.Context(), file)
		if err != nil || p.Failed > 0 {
			t.Fatalf("seed %d, killed at request %d (%v): then %+v, %v", seed, at, lost, p, err)
		}
		w.wantEqual(next, after)
		if d := difference(w.scanned(name), want); d != "" {
			t.Errorf("seed %d, killed at request %d (lost: %v): not as after one apply:\n%s",
				seed, at, lost, d)
		}
	}
	t.Logf("seed %d: %d applies of %d requests, %d had ended", seed, runs, requests, finished)
	if finished > runs/2 {
		t.Errorf("%d of %d applies were not killed", finished, runs)
	}
}

// TestInterruptedApply interrupts applies at random requests, as Ctrl-C does. Each removes its mark
// and says how far it came, so that the next apply begins at once. The table is then as after one
// apply that was not interrupted.
func TestInterruptedApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.prepare(w.namespace("whole"))
	whole := &lifeline{}
	all := w.open("ann", inNamespace("whole"), through(whole))
	opened := whole.seen
	p := all.apply(after)
	requests, changes := whole.seen-opened, len(p.Changes)
	want := w.scanned("whole")

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	stopped := 0
	for run := range soak.Amount(12, 50) {
		name := w.namespace(fmt.Sprintf("run-%d", run))
		w.prepare(name)
		at := 1 + random.IntN(requests)
		ctx, cancel := context.WithCancel(t.Context())
		network := &interrupting{stop: cancel}
		a := w.open("ann", inNamespace(name), through(network))
		network.at.Store(network.seen.Load() + int64(at))
		_, err := a.ApplyLimits(ctx, &httpapi.LimitsFile{Text: after, Yes: true})
		cancel()
		e, _ := errors.AsType[*weir.Error](err)
		if err != nil && (!errors.Is(err, context.Canceled) || e == nil) {
			t.Fatalf("seed %d, interrupted at request %d: got %v", seed, at, err)
		}
		if e != nil && e.Field == "limits" {
			stopped++
			var made, left int
			_, err := fmt.Sscanf(e.Reason, "the apply was stopped: changes made: %d, left: %d;", &made, &left)
			if err != nil || made+left != changes || !strings.Contains(e.Reason, "it goes on") {
				t.Errorf("seed %d: of %d changes: %s", seed, changes, e.Reason)
			}
		}
		next := w.open("bob", inNamespace(name))
		again, err := next.ApplyLimits(t.Context(), &httpapi.LimitsFile{Text: after, Yes: true})
		if err != nil || again.Failed > 0 {
			t.Fatalf("seed %d, interrupted at request %d: then %+v, %v", seed, at, again, err)
		}
		w.wantEqual(next, after)
		if d := difference(w.scanned(name), want); d != "" {
			t.Errorf("seed %d, interrupted at request %d: not as after one apply:\n%s", seed, at, d)
		}
	}
	t.Logf("seed %d: %d were stopped among the changes", seed, stopped)
	if stopped == 0 {
		t.Error("no apply was stopped among its changes")
	}
}

// interrupting is a network whose user interrupts the process with one of its requests.
type interrupting struct {
	stop     context.CancelFunc
	at, seen atomic.Int64
}

func (i *interrupting) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.seen.Add(1) == i.at.Load() {
		i.stop()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// killed applies the file until the process is killed, and reports whether it was.
func (w *world) killed(namespace string, at int, lost bool) bool {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	network := &lifeline{}
	a := w.open("ann", inNamespace(namespace), through(network))
	network.mu.Lock()
	network.at, network.lost, network.kill = network.seen+at, lost, cancel
	network.mu.Unlock()
	p, err := a.ApplyLimits(ctx, &httpapi.LimitsFile{Text: after, Yes: true})
	if err == nil {
		w.Logf("killed at %d: ended with %d failed", at, p.Failed)
		return false
	}
	if !errors.Is(err, context.Canceled) {
		w.Errorf("killed at request %d: got %v", at, err)
	}
	return true
}
