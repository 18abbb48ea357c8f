package server

import (
	"net"
	"net/http"
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
}

func newBoundedListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{
		Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{}),
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
	return &boundedConn{Conn: conn, listener: l}, nil
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
	}
}

// boundedConn is a connection that gives its slot back when it is closed.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	active   atomic.Bool
	once     sync.Once
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.setActive(false)
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
