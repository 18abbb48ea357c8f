package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
)

// TestPrintable: what a terminal would obey is shown instead.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "",
		"acme/gpt-4o é 日本":      "acme/gpt-4o é 日本",
		"\x1b[31mred\n\tx\x7f":  `\x1b[31mred\n\tx\x7f`,
		"a\u202eb\u009b2J":      `a\u202eb\u009b2J`,
		"half \xff of a letter": `half \xff of a letter`,
		"told so: \ufffd":       "told so: \ufffd",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	var b bytes.Buffer
	cells := table{columns: make([]column, 2)}
	cells.add("\x1b[2Jx\nforged", "1")
	if cells.write(&b); b.String() != `\x1b[2Jx\nforged  1`+"\n" {
		t.Errorf("got %q, want an escaped cell", b.String())
	}
}

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
