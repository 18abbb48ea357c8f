package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/internal/text"
)

// columns are where the fields of a call stand; negative where there is no such column.
type columns struct {
	time, input, output, entity, model, duration int

	width int // of the header, 0 before it was read
}

// wantedColumn is a column that is looked for, and the flag that names another.
type wantedColumn struct {
	name, flag string
	at         *int
}

func (c *columns) wanted(o *Options) []wantedColumn {
	return []wantedColumn{
		{o.Time, "--time-column", &c.time}, {o.Input, "--input-column", &c.input},
		{o.Output, "--output-column", &c.output}, {o.Entity, "--entity-column", &c.entity},
		{o.Model, "--model-column", &c.model}, {o.Duration, "--duration-column", &c.duration},
	}
}

// find looks for the columns in a header, and returns what is wrong with it. Names are matched
// exactly.
func (c *columns) find(o *Options, header []string) (reasons []string) {
	c.width = len(header)
	if reason := describeHeader(header); reason != "" {
		return []string{reason}
	}
	for _, w := range c.wanted(o) {
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

// describeHeader says what a header is that no program has written as UTF-8 with commas; empty if
// it may be one.
func describeHeader(header []string) string {
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

// QuoteName writes a column's name, in quotes where it would not be seen what belongs to it.
func QuoteName(name string) string {
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
		names = append(names, QuoteName(name))
	}
	list := strings.Join(names, ", ")
	if left := len(header) - most; left > 0 {
		list += fmt.Sprintf(" and %s more", text.FormatInt(int64(left)))
	}
	return list
}

// nameTable keeps one string for each entity and each resource of a trace, and one caller for each
// two of them that meet.
type nameTable struct {
	entities, resources stringTable
	pairs               map[[2]int32]int32
	callers             []EntityModel
}

func newNames() *nameTable {
	return &nameTable{
		entities:  stringTable{known: map[string]int32{}, most: MaxEntities, check: func(s string) string { return identifier.CheckEntity(s, true) }},
		resources: stringTable{known: map[string]int32{}, most: maxResources, check: identifier.CheckResource},
		pairs:     map[[2]int32]int32{},
	}
}

// stringTable numbers strings in the order in which they come.
type stringTable struct {
	known map[string]int32
	names []string
	most  int
	check func(string) (reason string)
}

// number returns the number of a name, or says what is wrong with it.
func (s *stringTable) number(name string) (number int32, reason string) {
	number, ok := s.known[name]
	if ok {
		return number, ""
	}
	if reason := s.check(name); reason != "" {
		return 0, reason
	}
	if len(s.names) >= s.most {
		return 0, fmt.Sprintf("is one too many: there may be %s of them", text.FormatInt(int64(s.most)))
	}
	name = strings.Clone(name) // what was read is a part of its line
	number = int32(len(s.names))
	s.known[name] = number
	s.names = append(s.names, name)
	return number, ""
}

// caller returns the number of who calls what, or says that there are too many.
func (n *nameTable) caller(entity, resource int32, of func() EntityModel) (number int32, reason string) {
	key := [2]int32{entity, resource}
	number, ok := n.pairs[key]
	switch {
	case ok:
		return number, ""
	case len(n.callers) >= MaxEntities:
		return 0, fmt.Sprintf("makes more than %s pairs of an entity and a resource",
			text.FormatInt(MaxEntities))
	}
	number = int32(len(n.callers))
	n.pairs[key] = number
	n.callers = append(n.callers, of())
	return number, ""
}

// CheckResource returns an error, in the words of the library, where no resource can have that
// name.
func CheckResource(name string) error {
	if reason := identifier.CheckResource(name); reason != "" {
		return errors.New(reason)
	}
	return nil
}
