package console

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
	ExitDone    = 0
	ExitFailed  = 1
	ExitMisused = 2
	ExitDenied  = 3
)

// exitError is an error of a command whose arguments were valid, with its exit code.
type exitError struct {
	code int
	err  error
}

func (f *exitError) Error() string { return f.err.Error() }

func (f *exitError) Unwrap() error { return f.err }

// ExitWith marks an error with an exit code.
func ExitWith(code int, err error) error { return &exitError{code, err} }

// FailedError marks an error of a command whose arguments were valid with the exit code of its
// kind.
func FailedError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	code := ExitFailed
	if _, ok := errors.AsType[*weir.DeniedError](err); ok {
		code = ExitDenied
	}
	return &exitError{code, err}
}

// UsageError returns an error about the command line itself, which names the help to read.
func UsageError(cmd *cobra.Command, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &exitError{ExitMisused, fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

// RunE returns a function for a cobra command whose errors are failures, not misuse.
func RunE(body func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return FailedError(body(cmd, args)) }
}

// ExitCode returns the exit code for an error. Errors that no command has marked come from parsing
// the command line.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	if f, ok := errors.AsType[*exitError](err); ok {
		return f.code
	}
	return ExitMisused
}

// printError prints an error: one line for each mistake joined in it.
func (a *App) printError(err error) {
	for _, line := range MistakeLines(err) {
		// An error of printing an error cannot be reported elsewhere.
		_, _ = io.WriteString(a.Streams.Err, "weir: "+line+"\n")
	}
}

// MistakeLines returns the lines for an error, without the "weir: " that libraries put first.
func MistakeLines(err error) []string {
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

// errorLines returns a line for each error joined in err, with the text around them. It escapes
// line breaks within an error, because the text may come from a server.
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

// AsUsageError marks mistakes in arguments as misuse, unless they are marked already.
func AsUsageError(cmd *cobra.Command, err error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	return UsageError(cmd, "%w", err)
}
