package testkit

import (
	"context"
	"net"
	"sync"
)

// PipeListener is a listener for connections in memory, which may live in a bubble of
// testing/synctest.
type PipeListener struct {
	address pipeAddress
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// ListenPipes returns a listener whose address is a text.
func ListenPipes(address string) *PipeListener {
	return &PipeListener{
		address: pipeAddress(address), conns: make(chan net.Conn), closed: make(chan struct{}),
	}
}

// DialContext connects to the listener, whatever the network and the address.
func (l *PipeListener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *PipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *PipeListener) Addr() net.Addr { return l.address }

type pipeAddress string

// Network implements [net.Addr].
func (pipeAddress) Network() string { return "pipe" }

// String implements [net.Addr].
func (a pipeAddress) String() string { return string(a) }
