package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/internal/text"
)

// columns are the indexes of the fields of a call; negative if there is no such column.
type columns struct {
	time, input, output, entity, model, duration int

	width int // of the header, 0 before it was read
}

// find looks for the columns in a header, and returns an error text if one is missing or occurs
// twice. Names must match exactly.
func (c *columns) find(o *Options, header []string) (reasons []string) {
	c.width = len(header)
	if reason := describeHeader(header); reason != "" {
		return []string{reason}
	}
	for _, w := range []struct {
		name, flag string
		at         *int
	}{
		{o.Time, "--time-column", &c.time}, {o.Input, "--input-column", &c.input},
		{o.Output, "--output-column", &c.output}, {o.Entity, "--entity-column", &c.entity},
		{o.Model, "--model-column", &c.model}, {o.Duration, "--duration-column", &c.duration},
	} {
		*w.at = slices.Index(header, w.name)
		switch {
		case w.name == "":
			*w.at = -1
		case *w.at < 0:
			reasons = append(reasons, fmt.Sprintf("has no column %s; %s names one of %s",
				QuoteName(w.name), w.flag, listed(header)))
		case slices.Contains(header[*w.at+1:], w.name):
			reasons = append(reasons, "has the column "+QuoteName(w.name)+" twice")
		}
	}
	return reasons
}

// describeHeader returns a text about a header that is not UTF-8 with commas; empty if it may be.
func describeHeader(header []string) string {
	first := header[0]
	switch {
	case strings.HasPrefix(first, "\xff\xfe"), strings.HasPrefix(first, "\xfe\xff"), strings.Contains(first, "\x00"):
		return "is not UTF-8 text: save the file as UTF-8"
	case len(header) > 1: // three columns are the least
	case strings.Contains(first, ";"):
		return "has semicolons between its columns: use commas"
	case strings.Contains(first, "\t"):
		return "has tabs between its columns: use commas"
	}
	return ""
}

// QuoteName writes a column's name, in quotes if its beginning or end would be unclear.
func QuoteName(name string) string {
	if strings.ContainsAny(name, " ,;\"") || name == "" || fmt.Sprintf("%q", name) != `"`+name+`"` {
		return fmt.Sprintf("%q", clip.Text(name))
	}
	return clip.Text(name)
}

// listed names the columns of a header, or the first of them if there are many.
func listed(header []string) string {
	const most = 20
	var names []string
	for _, name := range header[:min(len(header), most)] {
		names = append(names, QuoteName(name))
	}
	list := strings.Join(names, ", ")
	if left := len(header) - most; left > 0 {
		list += fmt.Sprintf(" and %s more", text.FormatInt(int64(left)))
	}
	return list
}

// numbers gives distinct values numbers in the order of their first occurrence, so that each is
// kept once.
type numbers[T comparable] struct {
	known map[T]int32
	list  []T
	most  int
}

func newNumbers[T comparable](most int) *numbers[T] {
	return &numbers[T]{known: map[T]int32{}, most: most}
}

// add gives a number to a value that has none yet. It returns false if there are too many.
func (n *numbers[T]) add(v T) (number int32, ok bool) {
	if len(n.list) >= n.most {
		return 0, false
	}
	number = int32(len(n.list))
	n.known[v] = number
	n.list = append(n.list, v)
	return number, true
}

// name returns the number of a name, or the reason to refuse the name.
func name(n *numbers[string], name string, check func(string) string) (number int32, reason string) {
	number, known := n.known[name]
	if known {
		return number, ""
	}
	if reason := check(name); reason != "" {
		return 0, reason
	}
	number, ok := n.add(strings.Clone(name)) // the name is a part of its whole line
	if !ok {
		return 0, fmt.Sprintf("is one too many: a trace has at most %s of them",
			text.FormatInt(int64(n.most)))
	}
	return number, ""
}

// CheckResource returns an error if no resource can have that name.
func CheckResource(name string) error {
	if reason := identifier.CheckResource(name); reason != "" {
		return errors.New(reason)
	}
	return nil
}

// checkEntity returns the reason to refuse an entity's name; empty if there is none.
func checkEntity(name string) string { return identifier.CheckEntity(name) }
