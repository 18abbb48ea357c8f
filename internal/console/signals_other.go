//go:build !unix

package console

import "context"

// WithHangup changes nothing where no signal tells that the terminal was closed.
func WithHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// IgnoreBrokenPipes does nothing where no signal tells that nobody reads anymore.
func IgnoreBrokenPipes() {}
