//go:build cgo

package livetest

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// testLease is a lease of the test, and how it ended.
type testLease struct {
	step    int
	request *weir.Request
	lease   *weir.Lease
	used    weir.Costs
	receipt *weir.Receipt
}

// killing is one run of [TestServerKilled].
type killing struct {
	t       *testing.T
	seed    uint64
	mu      sync.Mutex
	leases  []*testLease
	denied  []*weir.Request
	unknown []*testLease
	servers [2]*served
	killed  time.Time
	steps   atomic.Int64
}

// TestServerKilled kills a server that has a thousand leases of all kinds. While it is down, a
// third of them pass the ends of their windows and slots. Then two other servers complete all of
// them, and each limit has in use what the arithmetic says.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	store, limits := storeURL(t), filepath.Join(t.TempDir(), "limits.yaml")
	write(t, limits, limitsFile())
	weirProgram := program(t)
	k := &killing{t: t, seed: seeded(t)}
	first := serve(t, weirProgram, store, limits)
	k.reserve(first, long, 640)
	k.reserve(first, brief, 330)
	k.lose(first, 30)
	k.judge(long)

	k.servers = [2]*served{serve(t, weirProgram, store, limits), serve(t, weirProgram, store, limits)}
	k.ask()
	until(t, k.killed.Add(span+late))
	k.complete()
	k.growth()
	k.repeat()
	until(t, time.Now().Add(span+late))
	k.standing()
	k.probe()
}

// reserve reserves n leases, skipping requests that are denied.
func (k *killing) reserve(s *served, resource string, n int) {
	k.t.Helper()
	var admitted atomic.Int64
	began := time.Now()
	together(4*n, func(int) {
		if admitted.Load() >= int64(n) {
			return
		}
		step := int(k.steps.Add(1))
		r := planned(k.seed, step, resource)
		lease, err := s.Reserve(k.t.Context(), r)
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case err == nil:
			admitted.Add(1)
			k.leases = append(k.leases, &testLease{step: step, request: r, lease: lease})
		case isDenied(err):
			k.denied = append(k.denied, r)
		default:
			k.t.Errorf("reserve: %v", err)
		}
	})
	k.t.Logf("%s: %d admitted in %v", resource, admitted.Load(), time.Since(began))
	if admitted.Load() < int64(n) {
		k.t.Fatalf("%s: want %d admitted", resource, n)
	}
}

func isDenied(err error) bool {
	var denied *weir.DeniedError
	return errors.As(err, &denied)
}

// lose reserves, and kills the server before it has answered all of the requests.
func (k *killing) lose(s *served, n int) {
	k.t.Helper()
	var wait sync.WaitGroup
	some := make(chan struct{}, n)
	for range n {
		h := &testLease{step: int(k.steps.Add(1))}
		h.request = planned(k.seed, h.step, long)
		h.request.Entity = "lost-" + h.request.Entity // an entity that has room
		wait.Go(func() {
			var err error
			h.lease, err = s.Reserve(k.t.Context(), h.request)
			some <- struct{}{}
			if err != nil && !errors.Is(err, weir.Unavailable) {
				k.t.Errorf("reserve at the end: got %v, want unavailable", err)
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if err != nil {
				k.unknown = append(k.unknown, h)
			} else {
				k.leases = append(k.leases, h)
			}
		})
	}
	<-some
	k.killed = time.Now()
	s.kill(k.t)
	wait.Wait()
	passing := 0
	for _, h := range k.leases {
		if h.request.Resource == brief && h.lease.ReservedAt.Add(span).After(k.killed) {
			passing++
		}
	}
	k.t.Logf("%d leases, %d without an answer, %d whose windows end after the kill; %d denied",
		len(k.leases), len(k.unknown), passing, len(k.denied))
}

// judge checks the denials on a resource whose units do not return: what was in use at the end left
// no room either. It also checks that no limit was exceeded.
func (k *killing) judge(resource string) {
	k.t.Helper()
	l := ledger{}
	for _, h := range k.leases {
		if h.request.Resource == resource {
			l.take(h.request)
		}
	}
	for of, n := range l {
		if of.limit != "seen" && n > room(of.limit) {
			k.t.Errorf("%v: %d in use", of, n)
		}
	}
	denied := 0
	for _, r := range k.denied {
		if r.Resource != resource {
			continue
		}
		denied++
		if !l.refuses(r) {
			k.t.Errorf("%v was denied, and would have fit", r)
		}
	}
	if denied == 0 {
		k.t.Error("nothing was denied")
	}
}

// ask repeats the reservations that had no answer, and some that had one. Each is charged once.
func (k *killing) ask() {
	k.t.Helper()
	replays, known := 0, len(k.leases)
	for i, h := range append(k.leases[:known:known], k.unknown...) {
		if i < known && i%10 != 0 {
			continue
		}
		again, err := k.servers[i%2].Reserve(k.t.Context(), h.request)
		if err != nil {
			k.t.Errorf("reserve again: %v", err)
			continue
		}
		switch {
		case h.lease == nil:
			h.lease = again
			k.leases = append(k.leases, h)
			if again.Replay {
				replays++
			}
		case !again.Replay || !again.ReservedAt.Equal(h.lease.ReservedAt) || again.ID != h.lease.ID:
			k.t.Errorf("reserve again: got %+v, want %+v once more", again, h.lease)
		}
		if other, err := k.servers[1-i%2].Reserve(k.t.Context(), h.request); err != nil ||
			!other.ReservedAt.Equal(again.ReservedAt) {
			k.t.Errorf("reserve on the other server: got %+v and error %v, want %+v", other, err, again)
		}
	}
	k.t.Logf("%d of %d without an answer had been admitted", replays, len(k.unknown))
}

// complete completes every lease on either server, those on the brief resource last.
func (k *killing) complete() {
	k.t.Helper()
	began := time.Now()
	for _, resource := range []string{long, brief} {
		together(len(k.leases), func(i int) {
			h := k.leases[i]
			if h.request.Resource != resource {
				return
			}
			var err error
			h.used = actuals(k.seed, h.step, h.request)
			s := k.servers[dice(k.seed^2, h.step).IntN(2)]
			h.receipt, err = s.Complete(k.t.Context(), h.lease.ID, []weir.Costs{h.used})
			if err != nil {
				k.t.Errorf("complete %v with %v: %v", h.request, h.used, err)
			}
		})
	}
	k.t.Logf("completed in %v", time.Since(began))
	if k.t.Failed() {
		k.t.FailNow()
	}
}

// repeat completes again on the other server: it expects the same receipt, and a conflict for other
// actuals.
func (k *killing) repeat() {
	k.t.Helper()
	together(len(k.leases), func(i int) {
		h := k.leases[i]
		if i%5 != 0 {
			return
		}
		s := k.servers[1-dice(k.seed^2, h.step).IntN(2)]
		again, err := s.Complete(k.t.Context(), h.lease.ID, []weir.Costs{h.used})
		if err != nil || *again != *h.receipt {
			k.t.Errorf("complete again: got %+v and error %v, want %+v", again, err, h.receipt)
		}
		other := weir.Costs{"tokens": h.used["tokens"] + 1}
		_, err = s.Complete(k.t.Context(), h.lease.ID, []weir.Costs{other})
		if !errors.Is(err, weir.Conflict) {
			k.t.Errorf("complete with other actuals: got %v, want a conflict", err)
		}
	})
}
