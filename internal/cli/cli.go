// Package cli is the command line: its commands, what they read and print, and how they end.
//
// [Run] is the whole of it. Nothing in the package is shared between two calls of Run, so that
// tests run commands side by side.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Streams are what a command reads from and writes to.
type Streams struct {
	// In is where "-" reads from.
	In io.Reader
	// Out gets results and help.
	Out io.Writer
	// Err gets errors, and progress where it is a terminal.
	Err io.Writer
}

// Run runs one command line, without the program's name, until it is done or ctx ends. Errors go to
// s.Err, one line for each mistake. It returns the exit code: 0 done, 1 failed, 2 misused, 3
// denied.
func Run(ctx context.Context, args []string, s Streams, env func(string) string) int {
	a := &app{streams: s, env: env}
	return a.execute(ctx, a.root(), args) //nolint:contextcheck // A command gets its context when it is executed.
}

// execute runs a command line on a tree of commands, and returns the exit code.
func (a *app) execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	root.SetIn(a.streams.In)
	out := &helpWriter{to: a.streams.Out}
	root.SetOut(out)
	root.SetErr(a.streams.Err)
	addCompletion(root)
	err := errors.Join(root.ExecuteContext(ctx), failed(out.failure()))
	a.complain(err)
	return exitCode(err)
}

// app is one run of the program.
type app struct {
	streams Streams
	env     func(string) string
}

// helpWriter is where cobra writes help and completions. Cobra does not say when that failed, or in
// its own words, so the writer keeps it.
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

// failure says what could not be written.
func (w *helpWriter) failure() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("output: %w", w.err)
}
