// Package console has the parts that all commands share: arguments and flags, the files and streams
// that they read and write, the terminal on which they may draw, and the exit code.
//
// [App] is one run of the program, with its [Streams] and environment. [App.Execute] runs a command
// line on a tree of cobra commands. A command checks its arguments ([Arguments], [RefuseEmpty]) and
// flags ([RejectBlankFlags]), and its function, wrapped by [RunE], returns an error. Errors of the
// command line itself are [UsageError]s; others are marked with an exit code by [ExitWith] or
// [FailedError]. Execute prints each mistake of the error on a line of its own and returns the exit
// code: 0 done, 1 failed, 2 misused, 3 denied.
//
// Files are read with [App.Open] and [App.Read], which stop when the context ends, and written with
// an [AtomicFile], which appears only when it is complete. [App.Terminal] returns the terminal, on
// which a [ProgressLine] shows progress.
//
// Nothing in the package is shared between two Apps, so that tests can run commands at the same
// time.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Streams are the streams from which a command reads and to which it writes.
type Streams struct {
	// In is read for the file name "-".
	In io.Reader
	// Out gets results and help.
	Out io.Writer
	// Err gets errors, and progress if it is a terminal.
	Err io.Writer
}

// Execute runs a command line on a tree of commands, and returns the exit code.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	root.SetIn(a.Streams.In)
	out := &helpWriter{to: a.Streams.Out}
	root.SetOut(out)
	root.SetErr(a.Streams.Err)
	addCompletion(root)
	err := errors.Join(root.ExecuteContext(ctx), FailedError(out.failure()))
	a.printError(err)
	return ExitCode(err)
}

// App is one run of the program.
type App struct {
	Streams Streams
	Env     func(string) string
}

// helpWriter is the writer to which cobra writes help and completions. Cobra reports the errors of
// these writes in its own words or not at all, so the writer keeps them.
type helpWriter struct {
	to  io.Writer
	err error
}

// Write always succeeds.
func (w *helpWriter) Write(b []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
	return len(b), nil
}

// failure returns the error of writing, if there was one.
func (w *helpWriter) failure() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("output: %w", w.err)
}
