//go:build cgo

package livetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle"
)

// The limits of the load: a window that is always full, and slots that never are.
const (
	outageKeys     = 2
	outageCapacity = 300
	outageWindow   = 2 * time.Second
	outageSlots    = 2 * callers
	storeTimeout   = 400 * time.Millisecond

	// away is how long TigerBeetle is down: longer than a denial is remembered. recovery is how
	// long it may take, on a busy machine, until calls are answered again.
	away     = 1700 * time.Millisecond
	recovery = 15 * time.Second
)

// cluster is a TigerBeetle process that is killed and started again on its data file.
type cluster struct {
	t       *testing.T
	program string
	address string
	file    string
	cmd     *exec.Cmd
	process *testkit.Process
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	storeURL(t) // skips the test without a server
	c := &cluster{t: t, program: os.Getenv("WEIR_TEST_TIGERBEETLE_BINARY")}
	if c.program == "" {
		t.Skip("WEIR_TEST_TIGERBEETLE_BINARY names no executable of TigerBeetle")
	}
	var config net.ListenConfig
	free, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = free.Addr().String()
	_ = free.Close()
	c.file = filepath.Join(t.TempDir(), "0_0.tigerbeetle")
	testkit.Run(t, exec.CommandContext(t.Context(), c.program, "format", "--cluster=0", "--replica=0",
		"--replica-count=1", "--development", c.file))
	c.start()
	return c
}

// start starts TigerBeetle, and waits until it accepts connections.
func (c *cluster) start() {
	c.t.Helper()
	c.cmd = exec.CommandContext(context.WithoutCancel(c.t.Context()), c.program, "start",
		"--addresses="+c.address, "--development", c.file)
	c.process = testkit.Start(c.t, c.cmd)
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	if err := c.process.WaitPort(ctx, c.address); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = c.process.Wait(c.t.Context()) // the error says that it was killed
}

// inflightReserve is one call to reserve as its caller saw it. repeated is set if the outcome of an
// earlier call was unknown.
type inflightReserve struct {
	key, units  int
	began, done time.Time
	lease       *weir.Lease
	denied      bool
	unavailable bool
	repeated    bool
}

// load is the calls of a test while the store goes away and comes back.
type load struct {
	t       *testing.T
	limiter *limiter.Limiter
	seed    uint64
	over    chan struct{} // closed when callers are to stop
	last    time.Time     // when all calls must have been answered
	mu      sync.Mutex
	all     []inflightReserve
	settled []inflightReserve // completions, with only the time and whether they were answered
}

func outageDefinitions() *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{
		{Name: "window", Kind: weir.Window, Capacity: outageCapacity, Window: outageWindow},
		{Name: "slots", Kind: weir.Concurrency, Capacity: outageSlots, Timeout: time.Hour},
	}}
}

// TestTigerBeetleKilled kills TigerBeetle three times under load. Calls made meanwhile are
// unavailable, and never denied for that reason. Afterwards everything continues without help, no
// window was exceeded, and hardly any call that fits was denied.
func TestTigerBeetleKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	store, err := tigerbeetle.Open(t.Context(), []string{c.address}, &tigerbeetle.Options{
		Namespace: freshName(), Definitions: outageDefinitions(),
	})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := limiter.New(store, &limiter.Options{StoreTimeout: storeTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() })
	kills := soak.Amount(3, 30)
	l := &load{
		t: t, limiter: lim, seed: seeded(t), over: make(chan struct{}),
		last: time.Now().Add(time.Duration(kills+2) * recovery),
	}
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() { l.call(caller) })
	}
	var outages []outage
	for range kills {
		until(t, time.Now().Add(time.Second))
		o := outage{from: time.Now()}
		c.kill()
		until(t, o.from.Add(away))
		o.started = time.Now()
		c.start()
		within(t, recovery, "an answer after the restart", func() bool { return l.answered(&o) })
		outages = append(outages, o)
	}
	until(t, time.Now().Add(2*time.Second))
	close(l.over)
	wait.Wait()
	l.judge(outages)
	l.slots()
}

// call reserves and completes until the end. It repeats calls without an answer until they have
// one.
func (l *load) call(caller int) {
	for step := caller; ; step += callers {
		select {
		case <-l.over:
			return
		default:
		}
		d := dice(l.seed, step)
		a := inflightReserve{key: d.IntN(outageKeys), units: 1 + d.IntN(3)}
		l.reserve(&a)
		if a.lease != nil {
			l.complete(a.lease)
			continue
		}
		until(l.t, time.Now().Add(3*time.Millisecond)) // denied
	}
}

// answered records when TigerBeetle first answered after it was started again, and reports whether
// it has. Denials from memory do not count.
func (l *load) answered(o *outage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range [][]inflightReserve{l.all, l.settled} {
		for i := range list {
			a := &list[i]
			answer := !a.unavailable && !a.denied && a.done.After(o.started)
			if answer && (o.over.IsZero() || a.done.Before(o.over)) {
				o.over = a.done
			}
		}
	}
	return !o.over.IsZero()
}

func (l *load) reserve(a *inflightReserve) {
	r := &weir.Request{
		LeaseID: weir.NewLeaseID(time.Now()), Entity: fmt.Sprintf("key-%d", a.key), Resource: "llm",
		Costs: weir.Costs{"window": int64(a.units)},
	}
	for ; time.Now().Before(l.last); a.repeated = true {
		a.began = time.Now()
		lease, err := l.limiter.Reserve(l.t.Context(), r)
		a.done = time.Now()
		a.lease, a.denied, a.unavailable = lease, isDenied(err), errors.Is(err, weir.Unavailable)
		l.mu.Lock()
		l.all = append(l.all, *a)
		l.mu.Unlock()
		if err == nil || a.denied {
			return
		}
		if !a.unavailable {
			l.t.Errorf("reserve: %v", err)
			return
		}
	}
	l.t.Error("reserve: no answer until the end")
}

func (l *load) complete(lease *weir.Lease) {
	for time.Now().Before(l.last) {
		a := inflightReserve{began: time.Now()}
		_, err := l.limiter.Complete(l.t.Context(), lease.ID, nil)
		a.done, a.unavailable = time.Now(), errors.Is(err, weir.Unavailable)
		l.mu.Lock()
		l.settled = append(l.settled, a)
		l.mu.Unlock()
		if err == nil {
			return
		}
		if !a.unavailable {
			l.t.Errorf("complete: %v", err)
			return
		}
	}
	l.t.Error("complete: no answer until the end")
}

// slots checks that all slots have returned.
func (l *load) slots() {
	l.t.Helper()
	for key := range outageKeys {
		limits, err := l.limiter.Status(l.t.Context(), fmt.Sprintf("key-%d", key), "llm")
		if err != nil {
			l.t.Fatal(err)
		}
		for _, s := range limits {
			if s.Limit == "slots" && s.Available != outageSlots {
				l.t.Errorf("key %d: got %d slots, want %d", key, s.Available, outageSlots)
			}
		}
	}
}
