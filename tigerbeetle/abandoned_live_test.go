//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// relay is a proxy in front of a server. It can stop forwarding in both directions.
type relay struct {
	net.Listener

	to   string
	gate sync.RWMutex // held for writing while nothing is forwarded
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w := &relay{Listener: l, to: to}
	go w.serve(t.Context())
	return w
}

func (w *relay) serve(ctx context.Context) {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(ctx, "tcp", w.to)
		if err != nil {
			_ = near.Close()
			return
		}
		go w.pass(near, far)
		go w.pass(far, near)
	}
}

func (w *relay) pass(to io.WriteCloser, from io.Reader) {
	defer to.Close() //nolint:errcheck // the other direction ends with it
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		w.gate.RLock()
		_, wrote := to.Write(buffer[:n])
		w.gate.RUnlock()
		if err != nil || wrote != nil {
			return
		}
	}
}

// TestAbandonedLive checks on a real server that reservations whose callers left while it did not
// answer are given back soon after it answers again.
func TestAbandonedLive(t *testing.T) {
	t.Parallel()
	address, cluster := testkit.TigerBeetle(t)
	w := newRelay(t, address)
	c, err := client.Open(t.Context(), []string{w.Addr().String()}, cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenLedger(t.Context(), c, &Options{
		Definitions: fourLimits(20), Namespace: liveNamespace(), Poll: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{CacheTTL: -1, StoreTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, limit := range []string{"m", "s", "w"} { // so that only the reservations are held back
		first, err := l.Reserve(t.Context(), unit(limit, 1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.gate.Lock()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := l.Reserve(ctx, unit([]string{"m", "s", "w"}[i%3], 1)); !errors.Is(err, weir.Unavailable) {
				t.Errorf("got %v, want %v", err, weir.Unavailable)
			}
		})
	}
	all.Wait()
	w.gate.Unlock()
	began := time.Now()
	for full := false; !full; {
		statuses, err := l.Status(t.Context(), "e", "r")
		if err != nil {
			t.Fatal(err)
		}
		full = s.abandoned.count.Load() == 0
		for _, of := range statuses {
			full = full && of.Available == of.Capacity
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("not all is back: %+v", statuses)
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Logf("all is back after %s: %+v", time.Since(began).Round(time.Millisecond), s.Stats())
	if s.Stats().Withdrawn == 0 {
		t.Error("nothing was withdrawn")
	}
}
