package limiter

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/identifier"
)

// namedCost is one entry of a [weir.Costs].
type namedCost struct {
	name  string
	units int64
	key   uint64 // of the charge, if name is a full name; 0 otherwise
}

// limit returns the name of the limit, without the entity and resource of a full name.
func (c *namedCost) limit() string {
	if c.key == 0 {
		return c.name
	}
	return c.name[strings.LastIndexByte(c.name, weir.NameSeparator)+1:]
}

// costList is a [weir.Costs] sorted by name. A list of a few entries is faster to search and to
// walk than a map.
type costList []namedCost

// appendCosts appends the costs to a list, sorted among themselves. A few are sorted by insertion,
// which needs no allocation.
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

// check returns an error for the first malformed name or negative amount in the list. It skips the
// names unless names is set. If full is set, names may be full ones, and check records the keys of
// the charges that they name.
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

// find returns the cost with a name. It searches linearly, because a request has at most 32 costs.
func (list costList) find(name string) (units int64, ok bool) {
	for i := range list {
		if list[i].name == name {
			return list[i].units, true
		}
	}
	return 0, false
}

// findKey returns the cost of a limit of the charge with a key.
func (list costList) findKey(key uint64, limit string) (units int64, ok bool) {
	for i := range list {
		if c := &list[i]; c.key == key && c.limit() == limit {
			return c.units, true
		}
	}
	return 0, false
}

// costLists has the costs of each charge of a request, or the totals of an update, as lists.
type costLists struct {
	lists  []costList
	buffer costList // the memory of the lists
	// names are the names of the last costs, sorted and checked. Consecutive calls mostly use the
	// same names, and looking up each of them is faster than ranging over the map, sorting and
	// checking. They are empty after costs with full names, whose keys are computed for each call.
	names []string
	// full allows full names.
	full bool
}

// add appends the costs of the next charge as a list. It returns an error for the first malformed
// name or negative amount.
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
			if list[i].key != 0 {
				b.names = b.names[:0]
				break
			}
			b.names = append(b.names, list[i].name)
		}
	}
	return nil
}

// addNamed appends the costs if they have exactly the names in b.names. Otherwise it returns false,
// and may leave costs in the buffer for the caller to discard.
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

// reset empties the lists and keeps their memory.
func (b *costLists) reset() { b.lists, b.buffer = b.lists[:0], b.buffer[:0] }
