package cli

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// column is a table's column; numbers stand at its right edge.
type column struct {
	head  string
	right bool
}

// table is text in columns.
type table struct {
	indent  string
	columns []column // a table without heads prints none
	rows    [][]string
}

// add adds a row. What a terminal would not show is escaped.
func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

// write prints the table: columns as wide as they must be, two spaces between them.
func (t *table) write(b *bytes.Buffer) {
	widths := make([]int, len(t.columns))
	heads := make([]string, len(t.columns))
	headed := false
	for i, c := range t.columns {
		heads[i] = c.head
		headed = headed || c.head != ""
		widths[i] = utf8.RuneCountInString(c.head)
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if headed {
		t.line(b, widths, heads)
	}
	for _, row := range t.rows {
		t.line(b, widths, row)
	}
}

func (t *table) line(b *bytes.Buffer, widths []int, cells []string) {
	var line strings.Builder
	line.WriteString(t.indent)
	for i, cell := range cells {
		if i > 0 {
			line.WriteString("  ")
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if t.columns[i].right {
			line.WriteString(pad + cell)
		} else {
			line.WriteString(cell + pad)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// thousands writes a number with a comma before every third digit.
func thousands(n int64) string { return separate(strconv.FormatInt(n, 10)) }

// separate puts commas into the decimal digits of a whole number.
func separate(digits string) string {
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

// plural is a count with the word for what is counted, in the form that fits.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + many
}
