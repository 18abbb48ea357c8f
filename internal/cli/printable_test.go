package cli

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
)

// TestForgedLines: a line break in the words of a server begins no line, and mistakes that are
// joined still have one each.
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
			failed(fmt.Errorf("a: %w (see b)", errors.Join(errors.New("one"), evil))),
			[]string{"a: one", line + " (see b)"},
		},
		{fmt.Errorf("%w, after: %w", errors.New("late"), evil), []string{`late, after: ` + line}},
	} {
		if got := complaints(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
