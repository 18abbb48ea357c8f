//go:build unix

package cli

import (
	"context"
	"os/signal"
	"syscall"
)

// untilHangup returns a context that ends when the terminal is closed, too: whoever has leases is
// to settle them as after an interrupt. Where hangups are ignored, as below nohup, they stay so.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}
