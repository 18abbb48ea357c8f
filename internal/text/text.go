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
	"unicode/utf8"
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
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		line.WriteString(t.Indent)
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if _, right := t.Head(i); right {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
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

// Cut cuts a text to a number of columns.
func Cut(text string, columns int) string {
	r := []rune(text)
	return string(r[:min(len(r), columns)])
}

// Shorten keeps the beginning of a long name.
func Shorten(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
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
