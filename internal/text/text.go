// Package text lays out text for people: columns, numbers, and names that may come from a server.
package text

import (
	"bytes"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Table is text in columns.
type Table struct {
	Indent string
	// Heads name the columns. A column whose head begins with ">" is aligned to the right, for
	// numbers. Columns without a head are aligned to the left; a table without heads prints no line
	// for them.
	Heads []string
	Rows  [][]string
}

// Add adds a row. Characters that a terminal would not print are escaped.
func (t *Table) Add(cells ...string) {
	for i := range cells {
		cells[i] = Printable(cells[i])
	}
	t.Rows = append(t.Rows, cells)
}

// Head returns the head of a column, and whether the column is aligned to the right.
func (t *Table) Head(i int) (name string, right bool) {
	if i >= len(t.Heads) {
		return "", false
	}
	return strings.CutPrefix(t.Heads[i], ">")
}

// Write prints the table: columns as narrow as their contents allow, two spaces between them.
func (t *Table) Write(b *bytes.Buffer) {
	heads := make([]string, len(t.Heads))
	for i := range heads {
		heads[i], _ = t.Head(i)
	}
	rows := t.Rows
	if strings.Join(heads, "") != "" {
		rows = append([][]string{heads}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		line.WriteString(t.Indent)
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			if _, right := t.Head(i); right {
				line.WriteString(Right(cell, widths[i]))
			} else {
				line.WriteString(Left(cell, widths[i]))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// FormatInt writes a number with a comma before every third digit.
func FormatInt(n int64) string { return groupDigits(strconv.FormatInt(n, 10)) }

// FormatBig writes a number of any size with a comma before every third digit.
func FormatBig(n *big.Int) string { return groupDigits(n.String()) }

// groupDigits puts commas into the decimal digits of a whole number.
func groupDigits(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	return sign + b.String()
}

// IsDigits reports whether a text is one or more decimal digits.
func IsDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// FormatMap writes name=value for each entry of a map, in the order of the names.
func FormatMap[V any](m map[string]V, value func(V) string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		words = append(words, name+"="+value(m[name]))
	}
	return strings.Join(words, " ")
}

// Plural returns a count with the singular or plural of a word.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return FormatInt(int64(n)) + " " + many
}

// Printable returns a text with all control characters escaped as in Go. Names and reasons may come
// from a server, and could otherwise move the cursor or forge a line.
func Printable(text string) string {
	plain := true
	for _, r := range text {
		plain = plain && r != utf8.RuneError && strconv.IsPrint(r)
	}
	if plain {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// Width returns the number of cells of a terminal that a text takes: two for wide East Asian
// characters and most emoji, none for combining marks. Emoji that are composed of several characters
// count as the sum of them.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 { // before the first combining mark
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Left aligns a text to the left: it adds spaces at the end up to a number of cells.
func Left(text string, cells int) string { return text + Blank(cells-Width(text)) }

// Right aligns a text to the right: it adds spaces in front up to a number of cells.
func Right(text string, cells int) string { return Blank(cells-Width(text)) + text }

// Blank returns n spaces; none if n is negative.
func Blank(n int) string { return strings.Repeat(" ", max(n, 0)) }

// Cut cuts a text to a number of cells.
func Cut(text string, cells int) string {
	for i, r := range text {
		if cells -= runeWidth(r); cells < 0 {
			return text[:i]
		}
	}
	return text
}

// Shorten cuts a text that takes more than a number of cells, and marks the cut with an ellipsis.
func Shorten(text string, most int) string { return ShortenWith(text, most, "…") }

// ShortenWith is like [Shorten] with another mark, which takes one cell.
func ShortenWith(text string, most int, mark string) string {
	if Width(text) <= most {
		return text
	}
	return Cut(text, most-1) + mark
}

// FormatMS writes a duration as people do: 12ms, 1.234s, 2m3.004s.
func FormatMS(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// FormatCompact writes a number in a few digits, rounded down: 9,999, 14.1M, 2.03G.
func FormatCompact(n *big.Int) string {
	digits := n.String()
	if len(digits) < 7 || n.Sign() < 0 {
		return groupDigits(digits)
	}
	power := min((len(digits)-1)/3, 6)
	whole, rest := digits[:len(digits)-3*power], digits[len(digits)-3*power:]
	if room := 3 - len(whole); room > 0 {
		whole += "." + rest[:room]
	}
	return whole + "kMGTPE"[power-1:power]
}

// FormatDifference writes a difference.
func FormatDifference(n int64) string { return FormatBigDifference(big.NewInt(n)) }

// FormatBigDifference writes a difference of any size.
func FormatBigDifference(n *big.Int) string {
	if n.Sign() > 0 {
		return "+" + groupDigits(n.String())
	}
	return groupDigits(n.String())
}
