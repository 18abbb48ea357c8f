package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// graceUnknown is how long a request protects its connection from eviction before its caller was
// let in, which means that its bearer token was accepted. Requests that need no role, such as
// health checks, take far less.
const graceUnknown = time.Second

// boundedListener bounds the open connections. When one more arrives, it closes the connection that
// has been idle longest, but never one with a request in progress. If none is idle, the new
// connection waits.
//
// A connection is idle after it was accepted, until a whole request header has arrived, and again
// after each answer. It is also idle if the caller of its request was not let in within
// [graceUnknown], if its request was refused and the rest of the body has not arrived, and if
// net/http keeps it open only so that the client can read its last answer.
type boundedListener struct {
	net.Listener

	most   int
	closed chan struct{}
	once   sync.Once
	// open counts the open connections, active those with a request in progress, and evicted those
	// that were closed for a new one.
	open, active, evicted atomic.Int64

	mu sync.Mutex
	// strangers are idle and never had a request whose caller was let in; known are idle and had
	// one. pending have a request whose caller was not let in yet. answered have their last answer.
	// Each list is in the order in which connections were added. Connections in no list have a
	// request in progress.
	strangers, known, pending, answered connList

	taken   int           // connections that are open or about to be
	waiting bool          // Accept waits for changed
	changed chan struct{} // gets an element when a connection was closed or became idle
	ended   bool          // connections without a request are no longer wanted
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{
		Listener: l, most: most, closed: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// Accept waits for a connection, and then until it may be open.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			if isOutOfFiles(err) && l.evictOne() {
				continue
			}
			return nil, err
		}
		c := &boundedConn{Conn: conn, listener: l}
		if !l.makeRoom() || !l.admit(c) {
			_ = conn.Close() // nothing was sent on it
			return nil, net.ErrClosed
		}
		return c, nil
	}
}

// isOutOfFiles reports whether the process or the system has too many open files.
func isOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// admit adds a connection to the strangers, and reports whether it is still wanted.
func (l *boundedListener) admit(c *boundedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		l.taken--
		return false
	}
	l.open.Add(1)
	l.strangers.push(c, time.Now())
	return true
}

// makeRoom waits until one more connection may be open, and counts it as taken. It returns false if
// the listener was closed first.
func (l *boundedListener) makeRoom() bool {
	for {
		l.mu.Lock()
		if l.taken < l.most {
			l.taken++
			l.waiting = false
			l.mu.Unlock()
			return true
		}
		c, wait := l.nextToEvict(time.Now())
		l.waiting = c == nil
		l.mu.Unlock()
		if c != nil {
			l.evict(c)
		} else if !l.waitChange(wait) {
			return false
		}
	}
}

// evictOne closes the connection that has been idle longest, if any.
func (l *boundedListener) evictOne() bool {
	l.mu.Lock()
	c, _ := l.nextToEvict(time.Now())
	l.mu.Unlock()
	if c == nil {
		return false
	}
	l.evict(c)
	return true
}

// nextToEvict removes the connection to evict from its list: the oldest of the strangers, the
// answered and those pending for too long, so that a new connection has time to send its first
// request while there are older ones; otherwise the oldest of the known. Without one it returns nil
// and how long to wait before the next look, 0 meaning until something changes.
func (l *boundedListener) nextToEvict(now time.Time) (c *boundedConn, wait time.Duration) {
	for _, list := range [...]*connList{&l.strangers, &l.answered, &l.pending} {
		first := list.head
		if first == nil {
			continue
		}
		if list == &l.pending {
			if wait = graceUnknown - now.Sub(first.since); wait > 0 {
				continue
			}
		}
		if c == nil || first.since.Before(c.since) {
			c = first
		}
	}
	if c == nil {
		c = l.known.head
	}
	if c == nil {
		return nil, wait
	}
	c.unlist()
	return c, 0
}

func (l *boundedListener) evict(c *boundedConn) {
	l.evicted.Add(1)
	_ = c.Close() // the client finds out when it next uses it
}

// waitChange waits for a change, at most for a time unless that is 0. It returns false if the
// listener was closed.
func (l *boundedListener) waitChange(most time.Duration) bool {
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-l.changed:
	case <-late:
	case <-l.closed:
		return false
	}
	return true
}

// wake makes a waiting Accept look again. The caller holds mu.
func (l *boundedListener) wake() {
	if !l.waiting {
		return
	}
	select {
	case l.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// Close stops accepting. Open connections stay open.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// boundedConnOf returns the connection that a listener accepted, or nil for another kind.
func boundedConnOf(conn net.Conn) *boundedConn {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
	}
	c, _ := conn.(*boundedConn)
	return c
}

// track moves a connection to the list of its state in net/http.
func (l *boundedListener) track(conn net.Conn, state http.ConnState) {
	c := boundedConnOf(conn)
	if c == nil || state != http.StateActive && state != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.over {
		return
	}
	c.used = true
	c.unlist()
	switch {
	case state == http.StateActive:
		c.setActive(true)
		if !c.known.Load() {
			l.pending.push(c, time.Now())
		}
		return
	case c.known.Load():
		l.known.push(c, time.Now())
	default:
		l.strangers.push(c, time.Now())
	}
	c.setActive(false)
	l.wake()
}

// moveToAnswered moves a connection that has its last answer.
func (l *boundedListener) moveToAnswered(c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.over {
		return
	}
	c.unlist()
	l.answered.push(c, time.Now())
	c.setActive(false)
	l.wake()
}

// connKey is the context key of a request's connection.
type connKey struct{}

// connContext returns the context of a connection's requests, with the connection and its address
// as their caller.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(httphandler.ConnContext(ctx, conn), connKey{}, boundedConnOf(conn))
}

// recordAuthenticated records that the caller of the request in progress was let in.
func recordAuthenticated(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*boundedConn)
	if !ok || c == nil || c.known.Load() {
		return
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.known.Store(true)
	c.unlist()
}

// markRefused makes a connection idle after the handler, if the caller of its request was not let
// in. net/http waits for the rest of the body before it sends the answer, but now for
// [graceUnknown] at most.
func markRefused(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*boundedConn)
	if !ok || c == nil || c.known.Load() || r.ContentLength == 0 {
		return
	}
	// If this fails, Bounds.ReadTimeout ends the wait.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(graceUnknown))
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.list == &c.listener.pending {
		c.unlist()
		c.listener.strangers.push(c, time.Now())
		c.listener.wake()
	}
}

// closeUnused closes the connections that never had a whole request. net/http calls it at shutdown:
// it would answer none of them and yet wait for them for five seconds.
func (l *boundedListener) closeUnused() {
	l.mu.Lock()
	l.ended = true
	var fresh []*boundedConn
	for c := l.strangers.head; c != nil; c = c.next {
		if !c.used {
			fresh = append(fresh, c)
		}
	}
	l.mu.Unlock()
	for _, c := range fresh {
		_ = c.Close() // there is nothing to do about an error
	}
}

// boundedConn is a connection of a [boundedListener]. The fields after known are guarded by the
// listener's mu.
type boundedConn struct {
	net.Conn

	listener *boundedListener
	known    atomic.Bool // a caller was let in on it

	list       *connList // nil if a request is in progress, or it is closed
	prev, next *boundedConn
	since      time.Time // when it was added to its list
	active     bool
	used       bool // it had a whole request
	over       bool // it is closed
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.over {
		c.over = true
		c.setActive(false)
		c.unlist()
		l.taken--
		l.open.Add(-1)
		l.wake()
	}
	return err
}

// CloseWrite closes the sending side. net/http calls it after the last answer to a client that may
// still be sending, and closes the connection half a second later, during which it must not keep
// others out. It is not called over TLS.
func (c *boundedConn) CloseWrite() error {
	defer c.listener.moveToAnswered(c)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *boundedConn) setActive(is bool) {
	if is && !c.active {
		c.listener.active.Add(1)
	} else if c.active && !is {
		c.listener.active.Add(-1)
	}
	c.active = is
}

// unlist removes the connection from its list.
func (c *boundedConn) unlist() {
	if c.list != nil {
		c.list.remove(c)
	}
}

// connList is a list of connections, linked through them. [container/list] would allocate an
// element for each request.
type connList struct{ head, tail *boundedConn }

func (l *connList) push(c *boundedConn, now time.Time) {
	c.list, c.prev, c.next, c.since = l, l.tail, nil, now
	if l.tail != nil {
		l.tail.next = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *connList) remove(c *boundedConn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.tail = c.prev
	}
	c.list, c.prev, c.next = nil, nil, nil
}
