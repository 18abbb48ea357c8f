package manifest

import (
	"fmt"

	"github.com/weir-limiter/weir/internal/clip"
)

// maxCascade is the largest number of ancestors that a charge can reach on any store.
const maxCascade = 8

// entityPosition has the positions of an entity and of its fields.
type entityPosition struct {
	name, path string
	at         position
	parentAt   position
	cascadeAt  position
}

// checkParents records parents that are not declared, cycles, and cascades without a parent or with
// too many ancestors. Each is recorded once, at the first entity concerned, and not for the
// entities below.
func (d *decoder) checkParents() {
	of := d.out.Definitions.Entities
	for _, e := range d.entities {
		parent := of[e.name].Parent
		if _, known := of[parent]; parent != "" && !known {
			d.found.add(e.parentAt, e.path+".parent", parent, "is not declared among the entities")
		}
		if of[e.name].Cascade && e.parentAt == (position{}) {
			d.found.add(e.cascadeAt, e.path+".cascade", "true", "needs a parent")
		}
	}
	if !d.checkCycles() {
		d.checkCascade()
	}
}

// checkCycles records every cycle, and reports whether there is one. It walks up from each entity
// until it comes to one that an earlier walk has visited, so each entity is visited once.
func (d *decoder) checkCycles() (found bool) {
	of := d.out.Definitions.Entities
	walks := make(map[string]int, len(of))
	for i, e := range d.entities {
		at := e.name
		for at != "" && walks[at] == 0 {
			walks[at] = i + 1
			at = of[at].Parent
		}
		if at != "" && walks[at] == i+1 {
			d.noteCycle(at)
			found = true
		}
	}
	return found
}

// noteCycle records a cycle at the member that is first in the file.
func (d *decoder) noteCycle(through string) {
	of := d.out.Definitions.Entities
	first, seen := d.order[through], map[string]bool{}
	for at := through; !seen[at]; at = of[at].Parent {
		seen[at] = true
		first = min(first, d.order[at])
	}
	e := d.entities[first]
	d.found.add(e.parentAt, e.path+".parent", of[e.name].Parent,
		fmt.Sprintf("leads back to %q, which is a cycle", clip.Text(e.name)))
}

// checkCascade records the entities from which a charge would reach one ancestor too many. The
// entities below these are not recorded.
func (d *decoder) checkCascade() {
	of := d.out.Definitions.Entities
	levels := make(map[string]int, len(of)) // ancestors charged, plus one
	for _, e := range d.entities {
		var line []string
		at := e.name
		for ; levels[at] == 0 && of[at].Cascade; at = of[at].Parent {
			line = append(line, at)
		}
		levels[at] = max(levels[at], 1)
		for i := len(line) - 1; i >= 0; i-- {
			levels[line[i]] = levels[of[line[i]].Parent] + 1
		}
	}
	for _, e := range d.entities {
		if levels[e.name] == maxCascade+2 {
			d.found.add(e.cascadeAt, e.path+".cascade", "true", fmt.Sprintf(
				"charges more than %d ancestors, which no store supports", maxCascade))
		}
	}
}
