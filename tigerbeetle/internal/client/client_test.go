//go:build cgo

package client

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// wire is a native client for tests. Its server accepts calls of up to a number of bytes, and
// answers when the test says so.
type wire struct {
	tb.Client
	bytes  int
	ended  chan struct{} // closed with the client
	end    sync.Once
	silent atomic.Bool
	calls  atomic.Int64
	sizes  []int
	mu     sync.Mutex
	// refuses is the error of the next calls.
	refuses atomic.Pointer[error]
}

func newWire(bytes int) *wire { return &wire{bytes: bytes, ended: make(chan struct{})} }

func (w *wire) refuse(err error) { w.refuses.Store(&err) }

// reach makes a call of a number of events and bytes.
func (w *wire) reach(events, size int) error {
	w.calls.Add(1)
	if err := w.refuses.Load(); err != nil {
		return *err
	}
	if (events+1)*size > w.bytes || events > maxEvents {
		return tb.ErrTooMuchData
	}
	if w.silent.Load() {
		<-w.ended
		return tb.ErrClientClosed
	}
	select {
	case <-w.ended:
		return tb.ErrClientClosed
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes = append(w.sizes, events)
	return nil
}

func (w *wire) Nop() error { return w.reach(0, 0) }
func (w *wire) Close()     { w.end.Do(func() { close(w.ended) }) }

func (w *wire) LookupTransfers(ids []tb.Uint128) ([]tb.Transfer, error) {
	return make([]tb.Transfer, len(ids)), w.reach(len(ids), 16)
}

func (w *wire) LookupAccounts(ids []tb.Uint128) ([]tb.Account, error) {
	return make([]tb.Account, len(ids)), w.reach(len(ids), 16)
}

func (w *wire) CreateTransfers(all []tb.Transfer) ([]tb.CreateTransferResult, error) {
	return make([]tb.CreateTransferResult, len(all)), w.reach(len(all), 128)
}

func (w *wire) CreateAccounts(all []tb.Account) ([]tb.CreateAccountResult, error) {
	return make([]tb.CreateAccountResult, len(all)), w.reach(len(all), 128)
}

// wires dials one native client after another, and records errors.
type wires struct {
	mu    sync.Mutex
	next  []*wire
	dials int
	told  []error
}

func (w *wires) options(flights int) options {
	return options{
		dial: func(context.Context) (tb.Client, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dials++
			n := w.next[0]
			if len(w.next) > 1 {
				w.next = w.next[1:]
			}
			return n, nil
		},
		unreachable: func(cause error) error { return unreachableError([]string{"h:1"}, big.NewInt(7), cause) },
		onError: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, err)
		},
		maxInFlight: flights,
	}
}

// outcome returns how many clients were dialed, and the errors that were reported.
func (w *wires) outcome() (dials int, told []error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dials, w.told
}

func dialed(t *testing.T, flights int, natives ...*wire) (*Client, *wires) {
	t.Helper()
	w := &wires{next: natives}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c, err := newClient(ctx, w.options(flights))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, w
}

const (
	fullBytes        = 1<<20 - 256
	developmentBytes = 32<<10 - 256
)

// TestClientLearnsCallSize checks that the size of a call is known before the first one, even on a
// server with small messages.
func TestClientLearnsCallSize(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ bytes, events, lookups int }{
		{fullBytes, 8189, 8189}, {developmentBytes, 253, 2031}, {64 << 10, 511, 4095}, {256, 1, 15},
	} {
		c, _ := dialed(t, 10, newWire(tc.bytes))
		if c.MaxEvents() != tc.events || int(c.lookups.Load()) != tc.lookups {
			t.Errorf("%d bytes: got %d events and %d look-ups, want %d and %d",
				tc.bytes, c.MaxEvents(), c.lookups.Load(), tc.events, tc.lookups)
		}
		if _, err := c.CreateTransfers(t.Context(), make([]tb.Transfer, tc.events)); err != nil {
			t.Errorf("%d bytes: the most that fits: %v", tc.bytes, err)
		}
	}
}

// TestClientSplitsCalls checks that calls that can be split are split, that linked accounts stay
// together, and that a chain is refused.
func TestClientSplitsCalls(t *testing.T) {
	t.Parallel()
	native := newWire(developmentBytes)
	c, _ := dialed(t, 10, native)
	found, err := c.LookupAccounts(t.Context(), make([]tb.Uint128, 5000))
	if err != nil || len(found) != 5000 {
		t.Errorf("look-ups: got %d, %v", len(found), err)
	}
	accounts := make([]tb.Account, 400)
	accounts[252].Flags = accountLinked
	native.sizes = nil
	results, err := c.CreateAccounts(t.Context(), accounts)
	if err != nil || len(results) != 400 || native.sizes[0] != 252 {
		t.Errorf("accounts: got %d in calls of %v, %v", len(results), native.sizes, err)
	}
	if _, err := c.CreateTransfers(t.Context(), make([]tb.Transfer, 254)); !errors.Is(err, weir.Invalid) {
		t.Errorf("a chain: got %v, want %v", err, weir.Invalid)
	}
	// The server was restarted with smaller messages.
	native.bytes = 1024
	if found, err := c.LookupAccounts(t.Context(), make([]tb.Uint128, 500)); err != nil || len(found) != 500 {
		t.Errorf("look-ups: got %d, %v", len(found), err)
	}
	if results, err := c.CreateAccounts(t.Context(), make([]tb.Account, 300)); err != nil || len(results) != 300 {
		t.Errorf("accounts: got %d, %v", len(results), err)
	}
}

// TestClientGivesUp checks that a call ends with its context, that calls still in flight are
// bounded, and that Close ends them.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		native := newWire(fullBytes)
		c, w := dialed(t, 3, native)
		native.silent.Store(true)
		transfers := []tb.Transfer{{}}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			_, err := c.CreateTransfers(ctx, transfers)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
			cancel()
		}
		_, err := c.CreateTransfers(t.Context(), transfers)
		if !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), "3 calls are waiting") {
			t.Errorf("one too many: got %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.LookupAccounts(ended, make([]tb.Uint128, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.CreateTransfers(t.Context(), transfers); !errors.Is(err, weir.Unavailable) {
			t.Errorf("closed: got %v", err)
		}
		if dials, told := w.outcome(); dials != 1 || len(told) != 0 {
			t.Errorf("got %d dials, told %v", dials, told)
		}
	})
}

// TestClientReconnects checks that a client that the cluster has shut out is replaced once, by one
// of the calls that noticed, with growing pauses; meanwhile calls fail with the reason.
func TestClientReconnects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		words string
	}{
		"evicted":  {tb.ErrClientEvicted, "ended this client's session"},
		"closed":   {tb.ErrClientClosed, "the session with the cluster has ended"},
		"too high": {tb.ErrClientReleaseTooHigh, "the TigerBeetle client 0.17.9 is newer than the server: upgrade"},
		"too low":  {tb.ErrClientReleaseTooLow, "as old as 0.17.9: upgrade weir"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				first, second, silent, third := newWire(fullBytes), newWire(fullBytes), newWire(fullBytes), newWire(fullBytes)
				c, w := dialed(t, 100, first, second, silent, third)
				second.refuse(tc.err)
				silent.silent.Store(true)
				first.refuse(tc.err)
				ask := func() error {
					_, err := c.LookupAccounts(t.Context(), make([]tb.Uint128, 1))
					return err
				}
				var calls sync.WaitGroup
				for range 50 {
					calls.Go(func() {
						if err := ask(); !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), tc.words) {
							t.Errorf("got %v, want %q", err, tc.words)
						}
					})
				}
				calls.Wait()
				// 100 ms until the second client, 200 ms more until the silent one, which has 5 s.
				time.Sleep(350 * time.Millisecond)
				synctest.Wait()
				err := ask()
				if dials, _ := w.outcome(); !errors.Is(err, weir.Unavailable) || dials != 3 {
					t.Errorf("meanwhile: got %v after %d dials", err, dials)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if err := ask(); err == nil || !strings.Contains(err.Error(), "no replica answered at h:1 as TigerBeetle cluster 7") {
					t.Errorf("meanwhile: got %v", err)
				}
				time.Sleep(400 * time.Millisecond)
				synctest.Wait()
				err = ask()
				dials, told := w.outcome()
				if err != nil || dials != 4 {
					t.Errorf("in the end: got %v after %d dials", err, dials)
				}
				if len(told) != 3 {
					t.Errorf("told %v, want the loss and two failures", told)
				}
			})
		})
	}
}

// TestClientOpens checks that a client that gets no session returns the reason in time.
func TestClientOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent, newer := newWire(fullBytes), newWire(fullBytes)
		silent.silent.Store(true)
		newer.refuse(tb.ErrClientReleaseTooHigh)
		for _, tc := range []struct {
			native *wire
			words  string
		}{
			{silent, "no replica answered at h:1 as TigerBeetle cluster 7"},
			{newer, "upgrade the server"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			c, err := newClient(ctx, (&wires{next: []*wire{tc.native}}).options(1))
			cancel()
			if c != nil || !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("got %v, want %q", err, tc.words)
			}
			select {
			case <-tc.native.ended:
			default:
				t.Error("a native client is left open")
			}
		}
	})
}

// TestClientClosesDuringReconnect checks that closing during a reconnect leaves no client open.
func TestClientClosesDuringReconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, silent := newWire(fullBytes), newWire(fullBytes)
		c, _ := dialed(t, 10, first, silent)
		silent.silent.Store(true)
		first.refuse(tb.ErrClientEvicted)
		if _, err := c.LookupAccounts(t.Context(), make([]tb.Uint128, 1)); err == nil {
			t.Error("the call succeeded")
		}
		time.Sleep(time.Second)
		_ = c.Close()
		for _, n := range []*wire{first, silent} {
			<-n.ended
		}
	})
}
