//go:build unix

package console

import (
	"context"
	"os/signal"
	"syscall"
)

// WithHangup returns a context that also ends when the terminal is closed, so that a command with
// leases settles them as after an interrupt. Hangups that are ignored, as under nohup, stay
// ignored.
func WithHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// IgnoreBrokenPipes keeps a process from being ended by a write to a closed standard output or
// error. A server would otherwise end in the middle of a request, or before its last snapshot is
// written. It is never undone, because the last lines of the log must not end the process either.
// Commands that only print should end when their output is closed, and do not call it.
func IgnoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }
