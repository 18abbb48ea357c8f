//go:build !unix

package console

import "context"

// WithHangup has no effect: there is no signal for a closed terminal.
func WithHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// IgnoreBrokenPipes has no effect: there is no signal for a broken pipe.
func IgnoreBrokenPipes() {}
