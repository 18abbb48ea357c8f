package main

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// asProgram makes the test binary the program itself.
const asProgram = "WEIR_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// start runs the program with a pipe as its standard input.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, in *os.File, errs *bytes.Buffer) {
	t.Helper()
	read, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	errs = &bytes.Buffer{}
	cmd = exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdin, cmd.Stderr = read, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, errs
}

// TestProgram checks the arguments, the standard streams and the exit code of a process.
func TestProgram(t *testing.T) {
	t.Parallel()
	cmd, in, errs := start(t, "limits", "check", "-")
	if _, err := in.WriteString("version: 2\n"); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code says it
	got := strings.SplitN(errs.String(), ": ", 3)
	if code := cmd.ProcessState.ExitCode(); code != 1 || len(got) < 2 || got[1] != "stdin:1:10" {
		t.Errorf("got exit code %d and %q, want 1 and a mistake at stdin:1:10", code, errs)
	}
}

// TestInterrupt checks that the program ends with a message of its own after the first signal, even
// while it waits for input.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("processes cannot be sent an interrupt there")
	}
	cmd, in, errs := start(t, "limits", "check", "-")
	// This is more than a pipe holds. Once it is written, the program is reading, and handles signals.
	if _, err := in.WriteString(strings.Repeat("#\n", 1<<19)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code says it
	if code := cmd.ProcessState.ExitCode(); code != 1 || errs.String() != "weir: interrupted\n" {
		t.Errorf("got exit code %d and %q, want 1 and an interruption", code, errs)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
}
