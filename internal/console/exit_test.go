package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	denied := fmt.Errorf("reserve: %w", &weir.DeniedError{RetryAfter: time.Second})
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitDone},
		{FailedError(nil), ExitDone},
		{FailedError(errors.New("boom")), ExitFailed},
		{FailedError(fmt.Errorf("x: %w", context.Canceled)), ExitFailed},
		{UsageError(&cobra.Command{Use: "x"}, "boom"), ExitMisused},
		{FailedError(UsageError(&cobra.Command{Use: "x"}, "boom")), ExitMisused},
		{errors.New("an error of cobra's"), ExitMisused},
		{FailedError(denied), ExitDenied},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}

// TestMistakeLines checks that each mistake is one line, and that the program's name precedes it
// once.
func TestMistakeLines(t *testing.T) {
	t.Parallel()
	bad := &weir.Error{Code: weir.Invalid, Field: "costs.tpm", Value: "-1", Reason: "must not be negative"}
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, nil},
		{errors.New("boom"), []string{"boom"}},
		{bad, []string{`invalid: costs.tpm "-1": must not be negative`}},
		{
			FailedError(fmt.Errorf("t.csv:3: reserve: %w", bad)),
			[]string{`t.csv:3: reserve: invalid: costs.tpm "-1": must not be negative`},
		},
		{errors.Join(errors.New("one"), errors.Join(bad, nil, errors.New("three"))), []string{
			"one", `invalid: costs.tpm "-1": must not be negative`, "three",
		}},
		{errors.Join(errors.New("x"), context.Canceled), []string{"interrupted"}},
	} {
		if got := MistakeLines(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// TestForgedLines checks that a line break in the text of a server does not begin a new line, and
// that joined mistakes still have one line each.
func TestForgedLines(t *testing.T) {
	t.Parallel()
	evil := &weir.Error{Code: weir.Invalid, Field: "\x1b[2J", Value: "v", Reason: "no\nweir: all is well"}
	const line = `invalid: \x1b[2J "v": no\nweir: all is well`
	for _, c := range []struct {
		err  error
		want []string
	}{
		{evil, []string{line}},
		{fmt.Errorf("a: %w (see b)", evil), []string{"a: " + line + " (see b)"}},
		{
			FailedError(fmt.Errorf("a: %w (see b)", errors.Join(errors.New("one"), evil))),
			[]string{"a: one", line + " (see b)"},
		},
		{fmt.Errorf("%w, after: %w", errors.New("late"), evil), []string{`late, after: ` + line}},
	} {
		if got := MistakeLines(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
