// Command dynamodblocal runs DynamoDB Local in the foreground, for examples and for benchmarks. It
// prints the endpoint when the server answers, and ends with an interrupt. Its tables are in memory
// and are lost then. It needs Java 17, and Maven and the network the first time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-limiter/weir/internal/testkit"
)

// defaultPort is the port in most examples of DynamoDB Local.
const defaultPort = 8000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "dynamodblocal:", err)
		os.Exit(1)
	}
}

// run serves until the context or the server ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("dynamodblocal", flag.ContinueOnError)
	port := flags.Int("port", defaultPort, "TCP `port` on 127.0.0.1; 0 is a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q: there are only flags", flags.Arg(0))
	}
	server, err := testkit.StartDynamoDB(ctx, &testkit.DynamoDBOptions{Port: *port})
	if err != nil {
		return err
	}
	defer server.Stop()
	_, err = fmt.Fprintf(out, "DynamoDB Local at %s (Ctrl-C ends it)\n", server.Endpoint())
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-server.Done():
		return errors.New("the server ended by itself")
	}
}
