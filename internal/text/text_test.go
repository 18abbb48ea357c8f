package text

import (
	"bytes"
	"math"
	"math/big"
	"testing"
)

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567",
		math.MaxInt64: "9,223,372,036,854,775,807", -123_456: "-123,456",
		-1: "-1", -999: "-999", -1000: "-1,000", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := FormatInt(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestPrintable checks that control characters are escaped.
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
		if got := Printable(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	var b bytes.Buffer
	cells := Table{}
	cells.Add("\x1b[2Jx\nforged", "1")
	if cells.Write(&b); b.String() != `\x1b[2Jx\nforged  1`+"\n" {
		t.Errorf("got %q, want an escaped cell", b.String())
	}
}

func TestCompactNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ digits, want string }{
		{"0", "0"}, {"999", "999"}, {"1000", "1,000"}, {"999999", "999,999"}, {"1000000", "1.00M"},
		{"1999999", "1.99M"}, {"14196770", "14.1M"}, {"999999999", "999M"}, {"2030000000", "2.03G"},
		{"9223372036854775807", "9.22E"}, {"12345678901234567890123", "12345E"}, {"-1234567", "-1,234,567"},
	} {
		n, _ := new(big.Int).SetString(tt.digits, 10)
		if got := FormatCompact(n); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.digits, got, tt.want)
		}
	}
}

// TestWidth checks the number of cells of texts, among them characters that have no cell of their
// own or two.
func TestWidth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "漢字": 4, "한": 2, "カ": 2, "😀": 2, "█": 1, "שלום": 4,
		"ｶ": 1, "Ａ": 2, "ꀀ": 2, "\U00017000": 2, "…": 1, "⌚": 2,
	} {
		if got := Width(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestCut checks that a cut text takes at most the number of cells, and that combining marks stay
// with their letter.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		cells int
		want  string
	}{
		{"tenant", 9, "tenant"}, {"tenant", 3, "ten"}, {"tenant", 0, ""}, {"漢字", 3, "漢"},
		{"cafe\u0301s", 4, "cafe\u0301"},
	} {
		if got := Cut(c.text, c.cells); got != c.want {
			t.Errorf("%q to %d cells: got %q, want %q", c.text, c.cells, got, c.want)
		}
	}
}

// TestTable checks the columns of a table with aligned numbers, a wide name and an empty cell.
func TestTable(t *testing.T) {
	t.Parallel()
	table := Table{Indent: "  ", Heads: []string{"ENTITY", "LIMIT", ">DENIED", ""}}
	table.Add("tenant-1", "rpm", "0", "█████░░░░░")
	table.Add("日本-team", "usd_micros *", "1,099", "")
	table.Add("e\u0301te\u0301", "rpm", "12", "#")
	var b bytes.Buffer
	table.Write(&b)
	want := "" +
		"  ENTITY     LIMIT         DENIED\n" +
		"  tenant-1   rpm                0  █████░░░░░\n" +
		"  日本-team  usd_micros *   1,099\n" +
		"  e\u0301te\u0301        rpm               12  #\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
