package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir/internal/console"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			s := console.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
			os.Exit(Run(context.Background(), os.Args[1:], s, os.Getenv))
		},
	})
}

// TestScripts runs the commands as a shell would.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "untimed": untimed,
		},
		Setup: func(e *testscript.Env) error {
			hurry(e)
			return os.CopyFS(e.WorkDir, os.DirFS("testdata/limits"))
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits is a command of the scripts: "exits CODE PROGRAM ARG…" runs a program and expects that exit
// code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	got := "0"
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = strconv.Itoa(exit.ExitCode())
	} else {
		ts.Check(err)
	}
	if got != args[0] {
		ts.Fatalf("got exit code %s, want %s", got, args[0])
	}
}

// untimed is a command of the scripts: "untimed FILE" compares the last output with the file,
// except for measured times, charts and the data of charts.
func untimed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: untimed FILE")
	}
	clock := regexp.MustCompile(`replayed in .*` +
		`|"(wall_ms|operations_per_second)": \d+`)
	chart := regexp.MustCompile(`(?s)\n\w+ over time.*\n(\ncalls )|  "timeline".*?\n  },\n`)
	hide := func(name string) string {
		return chart.ReplaceAllString(clock.ReplaceAllString(ts.ReadFile(name), "-"), "$1")
	}
	if got, want := hide("stdout"), hide(args[0]); got != want {
		ts.Fatalf("got\n%s\nwant\n%s", got, want)
	}
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
	code := Run(t.Context(), args, console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, os.Getenv)
	return result{code, out.String(), errs.String()}
}

// hurry sets the variable that keeps the race detector from delaying the end of each command by a
// second.
func hurry(e *testscript.Env) { e.Setenv("GORACE", "atexit_sleep_ms=0") }

// TestHelpIsWrapped checks that no line of any command's help is wider than helpWidth.
func TestHelpIsWrapped(t *testing.T) {
	t.Parallel()
	root := newRoot((&console.App{Env: noEnv}))
	n := 0
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		n++
		var b bytes.Buffer
		cmd.SetOut(&b)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > helpWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), utf8.RuneCountInString(line), line)
			}
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(root)
	t.Logf("%d commands", n)
	if n < 40 {
		t.Errorf("only %d commands were looked at", n)
	}
}

// noEnv is an environment without variables.
func noEnv(string) string { return "" }
