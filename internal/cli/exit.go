package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/text"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 2
	exitDenied  = 3
)

// failure is an error of a command that was understood; the exit code says how it ended.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// failed marks what went wrong while a command did what it was asked to.
func failed(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	code := exitFailed
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		code = exitDenied
	}
	return &failure{code, err}
}

// misused marks what is wrong with the command line itself, and says where to read about it.
func misused(cmd *cobra.Command, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &failure{exitMisused, fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

// run makes a function the body of a command.
func run(body func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return failed(body(cmd, args)) }
}

// exitCode says how a run ended. What no command has marked comes from the parsing of the command
// line.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return exitMisused
}

// complain prints an error: one line for each mistake joined in it.
func (a *app) complain(err error) {
	for _, line := range complaints(err) {
		// An error that cannot be told has no better place to go.
		_, _ = io.WriteString(a.streams.Err, "weir: "+line+"\n")
	}
}

// complaints returns the lines for an error, without the "weir: " that libraries put first.
func complaints(err error) []string {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return []string{"interrupted"}
	}
	var lines []string
	for _, line := range errorLines(err) {
		line = strings.TrimPrefix(line, "weir: ")
		lines = append(lines, strings.ReplaceAll(line, ": weir: ", ": "))
	}
	return lines
}

// errorLines returns a line for each error joined in err, with what is said around them. A line
// break in the words of one of them is none: they may be somebody else's.
func errorLines(err error) []string {
	message := err.Error()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts, lines []string
		for _, e := range joined.Unwrap() {
			texts, lines = append(texts, e.Error()), append(lines, errorLines(e)...)
		}
		if strings.Join(texts, "\n") == message { // otherwise it is a sentence about several errors
			return lines
		}
		return []string{text.Printable(message)}
	}
	inner := errors.Unwrap(err)
	if inner == nil {
		return []string{text.Printable(message)}
	}
	before, after, found := strings.Cut(message, inner.Error())
	if !found {
		return []string{text.Printable(message)}
	}
	lines := errorLines(inner)
	lines[0] = text.Printable(before) + lines[0]
	lines[len(lines)-1] += text.Printable(after)
	return lines
}
