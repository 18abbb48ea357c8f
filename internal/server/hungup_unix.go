//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package server

import (
	"context"
	"errors"
	"syscall"
)

// hungUp reports whether the client of the request in progress has closed its connection, as far as
// the system knows. net/http finds that out in a goroutine and ends the context of the request, but
// later than a fast handler ends. hungUp peeks at the next byte and leaves it to net/http.
//
// It returns false over TLS, where an unread alert precedes the end of the stream.
func hungUp(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(*boundedConn)
	if !ok || c == nil {
		return false
	}
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	if err := raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		default:
			gone = err != nil || n == 0
		}
	}); err != nil {
		return true // it has been closed here
	}
	return gone
}
