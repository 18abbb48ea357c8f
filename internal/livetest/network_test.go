package livetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/testkit"
)

// network makes connections: of this machine's loopback, or in memory.
type network interface {
	listen(t *testing.T) net.Listener
	dial(ctx context.Context, network, address string) (net.Conn, error)
}

// loopback is a [network] of real connections.
type loopback struct{}

func (loopback) listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It does not block.
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (loopback) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// pipes is a [network] in memory, which may live in a bubble of testing/synctest.
type pipes struct {
	mu        sync.Mutex
	listeners map[string]*testkit.PipeListener
}

func (p *pipes) listen(*testing.T) net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := testkit.ListenPipes(fmt.Sprintf("pipe%d:80", len(p.listeners)))
	if p.listeners == nil {
		p.listeners = map[string]*testkit.PipeListener{}
	}
	p.listeners[l.Addr().String()] = l
	return l
}

func (p *pipes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("nobody listens at %s", address)
	}
	return l.DialContext(ctx, network, address)
}

// dice are a source of random choices that several goroutines share.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// upTo returns a duration from 0 to most.
func (d *dice) upTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rng.Int64N(int64(most) + 1))
}

// oneIn returns true with probability 1/n.
func (d *dice) oneIn(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n) == 0
}

// pick returns a number below n.
func (d *dice) pick(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// delays are the delays of the messages on a network.
type delays struct {
	*dice

	// latency is the longest delay of other messages.
	latency time.Duration
	// oneOf is n if one in n of the messages that may be held back is held back.
	oneOf int
	// most is the longest time for which a message is held back at present, in nanoseconds; 0 for
	// none.
	most atomic.Int64
	// underway counts the messages of interest that have not arrived.
	underway atomic.Int64
	// held counts the messages that were held back.
	held atomic.Int64
}

// next returns the delay of the next message.
func (d *delays) next(mayHold bool) time.Duration {
	delay := d.upTo(d.latency)
	if most := d.most.Load(); mayHold && most > 0 && d.oneIn(d.oneOf) {
		d.held.Add(1)
		delay += d.upTo(time.Duration(most))
	}
	return delay
}

// wire is a network between callers and a server. Each connection keeps its order, and connections
// do not wait for one another. Hanging up keeps that order too: a server learns that a caller has
// left only after it has received the request that was held back.
type wire struct {
	network  network
	listener net.Listener
	target   string
	*delays

	// marks reports whether a request is of interest, such as a reservation.
	marks func(piece []byte) bool
	// requests and answers say which of the two kinds may be held back.
	requests, answers bool
	// deaf keeps every second connection open, after the caller has hung up, until the request is
	// answered, as some proxies do.
	deaf bool

	conns sync.WaitGroup
	mu    sync.Mutex
	open  map[net.Conn]bool
	ended bool
}

// start lets callers connect.
func (w *wire) start(t *testing.T) {
	t.Helper()
	w.listener = w.network.listen(t)
	w.open = map[net.Conn]bool{}
	w.conns.Go(func() {
		for {
			near, err := w.listener.Accept()
			if err != nil {
				return
			}
			w.conns.Go(func() { w.join(near) })
		}
	})
}

// address is the address to which callers connect.
func (w *wire) address() string { return w.listener.Addr().String() }

// close ends all connections.
func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	w.ended = true
	for c := range w.open {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.conns.Wait()
}

// keep records a connection, so that close ends it; after close it closes the connection at once.
func (w *wire) keep(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.open[c] = true
		if w.ended {
			_ = c.Close()
		}
	}
}

func (w *wire) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(w.open, c)
	}
}

// join connects a caller with the server until one of them has hung up.
func (w *wire) join(near net.Conn) {
	far, err := w.network.dial(context.Background(), "tcp", w.target)
	if err != nil {
		_ = near.Close()
		return
	}
	w.keep(near, far)
	defer w.drop(near, far)
	s := &stream{wire: w, deaf: w.deaf && w.oneIn(2)}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.pump(near, far, false)
		_ = near.Close()
		_ = far.Close()
	}()
	s.pump(far, near, true)
	s.left.Store(true)
	if !s.deaf || !s.asked.Load() {
		_ = far.Close()
	}
	<-answered
}

// stream is one connection through a wire.
type stream struct {
	*wire

	deaf bool
	// asked is true from a request to its answer; marked is true if that request is of interest.
	asked, marked atomic.Bool
	// left is true after the caller has hung up.
	left atomic.Bool
}

// pump copies messages from one end to the other, until one of them is closed.
func (s *stream) pump(to, from net.Conn, request bool) {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && !s.carry(to, piece[:n], request) || err != nil {
			return
		}
	}
}

// carry writes a message to the other end after a delay. It returns false if that end is closed.
func (s *stream) carry(to net.Conn, piece []byte, request bool) bool {
	if request {
		s.asked.Store(true)
		s.marked.Store(s.marks(piece))
	}
	marked := s.marked.Load()
	if marked {
		s.underway.Add(1)
		defer s.underway.Add(-1)
	}
	if d := s.next(marked && (request && s.requests || !request && s.answers)); d > 0 {
		<-time.After(d)
	}
	if !request {
		s.asked.Store(false)
	}
	_, err := to.Write(piece)
	// Data that is written to a caller that has just hung up is lost without an error.
	return err == nil && (request || !s.left.Load())
}
