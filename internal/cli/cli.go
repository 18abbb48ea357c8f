// Package cli is the command line: its tree of commands, and those that operate weir.
//
// [Run] is the whole of it. Nothing in the package is shared between two calls of Run, so that
// tests run commands side by side.
package cli

import (
	"context"

	"github.com/weir-limiter/weir/internal/console"
)

// Run runs one command line, without the program's name, until it is done or ctx ends. Errors go to
// s.Err, one line for each mistake. It returns the exit code: 0 done, 1 failed, 2 misused, 3
// denied.
func Run(ctx context.Context, args []string, s console.Streams, env func(string) string) int {
	a := &console.App{Streams: s, Env: env}
	return a.Execute(ctx, newRoot(a), args) //nolint:contextcheck // A command gets its context when it is executed.
}
