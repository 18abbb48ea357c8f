//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package server

import (
	"context"
	"errors"
	"syscall"
)

// hungUp reports whether the client of the request under way has closed its connection, as far as the
// system knows. net/http finds out in a goroutine of its own and ends the request's context then, but
// a handler that does not wait is done before that. The last byte is only looked at, because net/http
// reads it.
//
// Over TLS the end of the stream stands behind an alert, which is not read here; then the answer is
// false.
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
