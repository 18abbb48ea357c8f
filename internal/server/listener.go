package server

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// boundedListener accepts a connection only while fewer than its bound are open; others wait in the
// system's queue.
type boundedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
	// open counts the open connections, active those of them with a request under way.
	open, active atomic.Int64

	mu    sync.Mutex
	fresh map[*boundedConn]struct{} // those that have not had a request yet
	// ended is true once no such connection is wanted anymore.
	ended bool
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{
		Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}),
		fresh: make(map[*boundedConn]struct{}),
	}
}

// Accept waits for a connection, and before that for a slot.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	l.open.Add(1)
	c := &boundedConn{Conn: conn, listener: l}
	l.mu.Lock()
	l.fresh[c] = struct{}{}
	ended := l.ended
	l.mu.Unlock()
	if ended {
		_ = c.Close() // nothing was said on it
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close stops accepting. Open connections stay open.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// track follows what net/http says of a connection.
func (l *boundedListener) track(conn net.Conn, state http.ConnState) {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = wrapped.NetConn()
	}
	if c, ok := conn.(*boundedConn); ok {
		c.setActive(state == http.StateActive)
		if state != http.StateNew {
			c.used()
		}
	}
}

// closeFresh closes the connections that never had a whole request. net/http calls it once it shuts
// down: it answers none of them from then on, and yet would wait for them for five seconds.
func (l *boundedListener) closeFresh() {
	l.mu.Lock()
	l.ended = true
	fresh := slices.Collect(maps.Keys(l.fresh))
	l.mu.Unlock()
	for _, c := range fresh {
		_ = c.Close() // nobody is there to be told
	}
}

// boundedConn is a connection that gives its slot back when it is closed.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	active   atomic.Bool
	spent    atomic.Bool // it is not fresh anymore
	once     sync.Once
}

// used notes that the connection is not fresh anymore.
func (c *boundedConn) used() {
	if c.spent.Swap(true) {
		return
	}
	c.listener.mu.Lock()
	delete(c.listener.fresh, c)
	c.listener.mu.Unlock()
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.setActive(false)
		c.used()
		c.listener.open.Add(-1)
		<-c.listener.slots
	})
	return err
}

// CloseWrite ends what is sent, so that net/http can wait for the client to have read the last
// answer before it closes.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *boundedConn) setActive(is bool) {
	if was := c.active.Swap(is); is && !was {
		c.listener.active.Add(1)
	} else if was && !is {
		c.listener.active.Add(-1)
	}
}
