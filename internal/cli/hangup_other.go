//go:build !unix

package cli

import "context"

// untilHangup changes nothing where no signal tells that the terminal was closed.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}
