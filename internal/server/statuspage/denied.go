package statuspage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/httpapi"
)

// maxDenied bounds the entities of a report whose denials are counted one by one. A segment counts
// up to twice as many, so that it rarely has to choose.
const maxDenied = 200

// deniedCounts counts denials by entity. If there are too many entities, it keeps those with the
// most denials, and counts the others together. So the sum is exact, and an entity that is often
// denied has its own count, however many others are denied now and then.
type deniedCounts struct {
	by     map[string]*int64 // pointers, because assigning to a map may keep the caller's string
	others int64
}

// add counts a denial of a segment, and keeps the entities in bounds.
func (d *deniedCounts) add(entity string) {
	d.addMany(entity, 1)
	d.bound()
}

func (d *deniedCounts) addMany(entity string, n int64) {
	entity = clip(entity)
	if count := d.by[entity]; count != nil {
		addUp(count, n)
		return
	}
	if d.by == nil {
		d.by = map[string]*int64{}
	}
	first := n // n itself would be allocated for every denial
	d.by[strings.Clone(entity)] = &first
}

// bound drops the entities with the fewest denials if there are more than twice those of a report.
func (d *deniedCounts) bound() {
	if len(d.by) <= 2*maxDenied {
		return
	}
	for _, e := range d.sorted()[maxDenied:] {
		delete(d.by, e.Entity)
		addUp(&d.others, e.Denied)
	}
}

// addAll adds the counts of a segment.
func (d *deniedCounts) addAll(of *deniedCounts) {
	addUp(&d.others, of.others)
	for entity, n := range of.by {
		d.addMany(entity, *n)
	}
}

// sorted returns the counts, the most denials first.
func (d *deniedCounts) sorted() []httpapi.ActivityDenied {
	list := make([]httpapi.ActivityDenied, 0, len(d.by)+1)
	for entity, n := range d.by {
		list = append(list, httpapi.ActivityDenied{Entity: entity, Denied: *n})
	}
	slices.SortFunc(list, func(a, b httpapi.ActivityDenied) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Entity, b.Entity))
	})
	return list
}

// list returns the counts of a report: those of the entities with the most denials, then one of all
// others.
func (d *deniedCounts) list() []httpapi.ActivityDenied {
	list, others := d.sorted(), d.others
	for _, e := range list[min(len(list), maxDenied):] {
		addUp(&others, e.Denied)
	}
	list = list[:min(len(list), maxDenied)]
	if others > 0 {
		list = append(list, httpapi.ActivityDenied{Denied: others})
	}
	return list
}
