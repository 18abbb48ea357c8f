package chart

import (
	"testing"
)

func TestCells(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "漢字": 4, "한": 2, "カ": 2, "😀": 2, "█": 1, "שלום": 4,
	} {
		if got := cells(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		most  int
		ascii bool
		want  string
	}{
		{"tenant-1", 8, false, "tenant-1"}, {"tenant-1", 7, false, "tenant…"},
		{"tenant-1", 7, true, "tenant~"}, {"漢字漢字", 6, false, "漢字…"}, {"ab", 1, false, "…"},
	} {
		if got := shorten(c.text, c.most, c.ascii); got != c.want {
			t.Errorf("%q to %d: got %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, ascii string }{
		{"tenant-1 ü", "tenant-1 ü", `tenant-1 \u00fc`},
		{"\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"a\nb", `a\nb`, `a\nb`},
		{"\u202eevil", `\u202eevil`, `\u202eevil`},
		{"\xff", `\xff`, `\xff`},
	} {
		if got := printable(c.text, false); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if got := printable(c.text, true); got != c.ascii {
			t.Errorf("%q in ASCII: got %q, want %q", c.text, got, c.ascii)
		}
	}
}
