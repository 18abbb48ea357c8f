//go:build unix

package console

import (
	"context"
	"os/signal"
	"syscall"
)

// WithHangup returns a context that ends when the terminal is closed, too: whoever has leases is
// to settle them as after an interrupt. Where hangups are ignored, as below nohup, they stay so.
func WithHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// IgnoreBrokenPipes keeps a process that serves from being ended by a write to its standard output or
// error once nobody reads them anymore: it would end in the middle of a request, or before its last
// snapshot is written. It is not undone: what is said at the very end must not end it either.
// Commands that only print are to end that way.
func IgnoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }
