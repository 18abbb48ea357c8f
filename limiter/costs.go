package limiter

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/identifier"
)

// namedCost is one of the costs, read from its map once: a map is slow to walk.
type namedCost struct {
	name  string
	units int64
	key   uint64 // of the charge that a full name is for; 0 if the name is not a full one
}

// limit returns the name of the limit alone.
func (c *namedCost) limit() string {
	if c.key == 0 {
		return c.name
	}
	return c.name[strings.LastIndexByte(c.name, weir.NameSeparator)+1:]
}

// costList has costs in the order of their names.
type costList []namedCost

// appendCosts appends costs to a list, in order among themselves.
func appendCosts(c weir.Costs, list costList) costList {
	const few = 16
	from := len(list)
	for name, units := range c {
		list = append(list, namedCost{name: name, units: units})
		for at := len(list) - 1; len(c) <= few && at > from && list[at-1].name > name; at-- {
			list[at-1], list[at] = list[at], list[at-1]
		}
	}
	if len(c) > few {
		slices.SortFunc(list[from:], func(a, b namedCost) int { return strings.Compare(a.name, b.name) })
	}
	return list
}

// check refuses malformed names and negative amounts, the first by name. If full is set, names may
// be full ones, and it notes which charges they are for.
func (list costList) check(field string, names, full bool) error {
	for i := range list {
		c := &list[i]
		if names {
			reason := ""
			if full {
				c.key, reason = checkFullName(c.name)
			}
			if c.key == 0 {
				reason = identifier.CheckLimit(c.name)
			}
			if reason != "" {
				return invalid(field+"."+shortenName(c.name), c.name, reason)
			}
		}
		if c.units < 0 {
			return invalid(field+"."+shortenName(c.name), c.units, "must not be negative")
		}
	}
	return nil
}

// find returns the cost of that name. Lists are short: a request has at most 32 costs.
func (list costList) find(name string) (units int64, ok bool) {
	for i := range list {
		if list[i].name == name {
			return list[i].units, true
		}
	}
	return 0, false
}

// findKey returns the cost of a limit of the charge with that key.
func (list costList) findKey(key uint64, limit string) (units int64, ok bool) {
	for i := range list {
		if c := &list[i]; c.key == key && c.limit() == limit {
			return c.units, true
		}
	}
	return 0, false
}

// costLists has the costs of each charge of a request, or the totals of a settlement, as lists.
type costLists struct {
	lists  []costList
	buffer costList // the memory of the lists
	// names are those of the last costs that were in order. The next ones mostly have the same, and
	// to look them up is quicker than to walk a map.
	names []string
	// full allows full names.
	full bool
}

// add reads the costs of the next charge, or says what is wrong with them: a malformed name or a
// negative amount, the first by name.
func (b *costLists) add(c weir.Costs, field string) error {
	from := len(b.buffer)
	known := b.addNamed(c)
	if !known {
		b.buffer = appendCosts(c, b.buffer[:from])
	}
	list := b.buffer[from:len(b.buffer):len(b.buffer)]
	b.lists = append(b.lists, list)
	if err := list.check(field, !known, b.full); err != nil {
		return err
	}
	if !known {
		b.names = b.names[:0]
		for i := range list {
			if list[i].key != 0 { // it is taken apart each time
				b.names = b.names[:0]
				break
			}
			b.names = append(b.names, list[i].name)
		}
	}
	return nil
}

// addNamed reads costs that have the names that are known, and no other.
func (b *costLists) addNamed(c weir.Costs) bool {
	if len(c) != len(b.names) {
		return false
	}
	for _, name := range b.names {
		units, ok := c[name]
		if !ok {
			return false
		}
		b.buffer = append(b.buffer, namedCost{name: name, units: units})
	}
	return true
}

// reset empties the book and keeps its memory.
func (b *costLists) reset() { b.lists, b.buffer = b.lists[:0], b.buffer[:0] }
