package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// maxHidden bounds the number of findings of [Hidden].
const maxHidden = 10_000

// HiddenLimits are the limits that do not apply on a resource because a stronger level has limits:
// the first level that has any limits applies as a whole.
type HiddenLimits struct {
	// Entities are the entities whose own limits hide the others, in order; entities with the same
	// outcome are in one finding. It is empty if the resource's limits hide those of the system,
	// for every other entity.
	Entities []string
	// Resource is the resource on which limits are hidden; [weir.DefaultResource] means every
	// resource that neither the entity nor the file names.
	Resource string
	// Level is the level that applies.
	Level weir.Level
	// Hidden are the weaker levels, the strongest first.
	Hidden []HiddenLevel
}

// HiddenLevel is a level that is hidden, with the names of its limits.
type HiddenLevel struct {
	Level weir.Level
	// Overridden are the names of limits that the level that applies has too.
	Overridden []string
	// Lost are the names of limits that the level that applies does not have, so that nothing
	// replaces them.
	Lost []string
}

// Hidden returns what is hidden in normalized definitions: first for each resource, then for each
// entity in the order of names, and for an entity by resource. It returns at most 10,000 findings.
func Hidden(d *weir.Definitions) []HiddenLimits {
	h := &hiddenFinder{definitions: d, byOutcome: map[string]int{}, byShape: map[string][]int{}}
	for _, resource := range slices.Sorted(maps.Keys(d.Resources)) {
		h.add(weir.Subject{Resource: resource}, resource)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		if limits := d.Entities[name].Limits; len(limits) > 0 {
			h.entity(name, limits)
		}
	}
	return h.found
}

// hiddenFinder collects findings, one for each outcome.
type hiddenFinder struct {
	definitions *weir.Definitions
	found       []HiddenLimits
	byOutcome   map[string]int   // index in found
	byShape     map[string][]int // indexes in found, by the names of an entity's limits
}

// entity finds what an entity's limits hide. Entities whose limits have the same names on the same
// resources hide the same, so ten thousand similar entities cost little more than one.
func (h *hiddenFinder) entity(name string, limits map[string][]weir.Limit) {
	own := slices.Sorted(maps.Keys(limits))
	var shape strings.Builder
	for _, resource := range own {
		shape.WriteString(resource + ":")
		for i := range limits[resource] {
			shape.WriteString(limits[resource][i].Name + " ")
		}
	}
	if places, known := h.byShape[shape.String()]; known {
		for _, i := range places {
			h.found[i].Entities = append(h.found[i].Entities, name)
		}
		return
	}
	places := []int{}
	look := func(resource, label string) {
		if i, ok := h.add(weir.Subject{Entity: name, Resource: resource}, label); ok {
			places = append(places, i)
		}
	}
	for _, resource := range own {
		if resource != weir.DefaultResource && len(limits[resource]) > 0 {
			look(resource, resource)
		}
	}
	if len(limits[weir.DefaultResource]) > 0 {
		look("", weir.DefaultResource)
		for _, resource := range slices.Sorted(maps.Keys(h.definitions.Resources)) {
			if len(limits[resource]) == 0 && len(h.definitions.Resources[resource]) > 0 {
				look(resource, resource)
			}
		}
	}
	h.byShape[shape.String()] = places
}

// add adds a finding for what is hidden from a subject and returns its index. It returns false if
// nothing is hidden, or if there are too many findings. An empty entity or resource means any that
// the file does not name.
func (h *hiddenFinder) add(s weir.Subject, label string) (place int, ok bool) {
	levels := h.definitions.Config(s).Levels
	if len(levels) < 2 {
		return 0, false
	}
	f := HiddenLimits{Resource: label, Level: levels[0].Level}
	for _, l := range levels[1:] {
		f.Hidden = append(f.Hidden, compareLevel(levels[0].Limits, l))
	}
	outcome := fmt.Sprint(s.Entity == "", f)
	place, known := h.byOutcome[outcome]
	if !known {
		if len(h.found) == maxHidden {
			return 0, false
		}
		place = len(h.found)
		h.found = append(h.found, f)
		h.byOutcome[outcome] = place
	}
	if s.Entity != "" {
		h.found[place].Entities = append(h.found[place].Entities, s.Entity)
	}
	return place, true
}

// compareLevel divides the names of a level's limits into those that the winner has too and the
// others.
func compareLevel(winner []weir.Limit, l weir.LevelLimits) HiddenLevel {
	out := HiddenLevel{Level: l.Level}
	for i := range l.Limits {
		name := l.Limits[i].Name
		same := func(w weir.Limit) bool { return w.Name == name }
		if slices.ContainsFunc(winner, same) {
			out.Overridden = append(out.Overridden, name)
		} else {
			out.Lost = append(out.Lost, name)
		}
	}
	return out
}

// Loses reports whether a hidden limit is not replaced by one with the same name.
func (h *HiddenLimits) Loses() bool {
	return slices.ContainsFunc(h.Hidden, func(l HiddenLevel) bool { return len(l.Lost) > 0 })
}

// who returns the entities as text, or "" if there are none.
func (h *HiddenLimits) who() string {
	const shown = 3
	who := strings.Join(h.Entities[:min(shown, len(h.Entities))], ", ")
	if more := len(h.Entities) - shown; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	return who
}

// where returns the resource as text.
func (h *HiddenLimits) where() string {
	if h.Resource == weir.DefaultResource {
		return "resources without limits of their own"
	}
	return h.Resource
}

// String returns one line for people.
func (h *HiddenLimits) String() string {
	who := h.who()
	if who == "" {
		who = "every other entity"
	}
	var hidden []string
	for _, l := range h.Hidden {
		var parts []string
		if len(l.Lost) > 0 {
			parts = append(parts, strings.Join(l.Lost, ", ")+" not applied at all")
		}
		if len(l.Overridden) > 0 {
			parts = append(parts, strings.Join(l.Overridden, ", ")+" overridden")
		}
		hidden = append(hidden, fmt.Sprintf("%s (%s)", l.Level, strings.Join(parts, "; ")))
	}
	return fmt.Sprintf("%s on %s: level %s hides %s", who, h.where(), h.Level, strings.Join(hidden, ", "))
}
