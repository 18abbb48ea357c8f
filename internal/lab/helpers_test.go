package lab

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
)

// TestMain puts a program with the lab's commands into the PATH, for tests that need a process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			s := console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
			os.Exit(runE(context.Background(), os.Args[1:], s, os.Getenv))
		},
	})
}

// runE runs a command line of the lab, as the program does.
func runE(ctx context.Context, args []string, s console.Streams, env func(string) string) int {
	a := &console.App{Streams: s, Env: env}
	root := &cobra.Command{Use: "weir", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(console.FlagError)
	root.AddCommand(ReplayCommand(a), LoadtestCommand(a), DemoCommand(a))
	return a.Execute(ctx, root, args)
}

// result is the result of a run of the program.
type result struct {
	code     int
	out, err string
}

// runWeir runs the program in this process, with an empty standard input.
func runWeir(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	code := runE(t.Context(), args, streams, os.Getenv)
	return result{code, out.String(), errs.String()}
}

// runBad runs a command and returns its exit code and the errors that it printed.
func runBad(t *testing.T, args ...string) (exit int, message string) {
	t.Helper()
	var out, errs bytes.Buffer
	exit = runE(t.Context(), args, console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, noEnv)
	if strings.Contains(out.String(), "admitted") {
		t.Errorf("%v: printed %q, as if it had been done", args, out.String())
	}
	return exit, errs.String()
}
