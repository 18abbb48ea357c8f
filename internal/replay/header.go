package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/text"
)

// columns are where the fields of a call stand; negative where there is no such column.
type columns struct {
	time, input, output, entity, model, duration int

	width int // of the header, 0 before it was read
}

// wanted is a column that is looked for, and the flag that names another.
type wanted struct {
	name, flag string
	at         *int
}

func (c *columns) wanted(o *ReadOptions) []wanted {
	return []wanted{
		{o.Time, "--time-column", &c.time}, {o.Input, "--input-column", &c.input},
		{o.Output, "--output-column", &c.output}, {o.Entity, "--entity-column", &c.entity},
		{o.Model, "--model-column", &c.model}, {o.Duration, "--duration-column", &c.duration},
	}
}

// find looks for the columns in a header, and returns what is wrong with it. Names are matched
// exactly.
func (c *columns) find(o *ReadOptions, header []string) (reasons []string) {
	c.width = len(header)
	if reason := foreign(header); reason != "" {
		return []string{reason}
	}
	for _, w := range c.wanted(o) {
		*w.at = slices.Index(header, w.name)
		switch {
		case w.name == "":
			*w.at = -1
		case *w.at < 0:
			reasons = append(reasons, fmt.Sprintf("has no column %s; %s names one of %s",
				quoteName(w.name), w.flag, listed(header)))
		case slices.Contains(header[*w.at+1:], w.name):
			reasons = append(reasons, "has the column "+quoteName(w.name)+" twice")
		}
	}
	return reasons
}

// foreign says what a header is that no program has written as UTF-8 with commas; empty if it may
// be one.
func foreign(header []string) string {
	first := header[0]
	switch {
	case strings.HasPrefix(first, "\xff\xfe"), strings.HasPrefix(first, "\xfe\xff"), strings.Contains(first, "\x00"):
		return "is no UTF-8 text: save the file as UTF-8"
	case len(header) > 1: // three columns are the least
	case strings.Contains(first, ";"):
		return "has semicolons between its columns: put commas there"
	case strings.Contains(first, "\t"):
		return "has tabs between its columns: put commas there"
	}
	return ""
}

// quoteName writes a column's name, in quotes where it would not be seen what belongs to it.
func quoteName(name string) string {
	if strings.ContainsAny(name, " ,;\"") || name == "" || fmt.Sprintf("%q", name) != `"`+name+`"` {
		return fmt.Sprintf("%q", shorten(name))
	}
	return shorten(name)
}

// listed names the columns that there are, the first of them where they are many.
func listed(header []string) string {
	const most = 20
	var names []string
	for _, name := range header[:min(len(header), most)] {
		names = append(names, quoteName(name))
	}
	list := strings.Join(names, ", ")
	if left := len(header) - most; left > 0 {
		list += fmt.Sprintf(" and %s more", text.FormatInt(int64(left)))
	}
	return list
}
