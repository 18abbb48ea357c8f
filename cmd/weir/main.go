// Command weir limits calls to LLM APIs; `weir help` says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-limiter/weir/internal/cli"
	"github.com/weir-limiter/weir/internal/console"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	streams := console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	exit := cli.Run(ctx, os.Args[1:], streams, os.Getenv)
	stop()
	os.Exit(exit)
}
