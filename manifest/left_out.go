package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
)

// leftOut are limits of weaker levels that a place of the file leaves out.
type leftOut struct {
	field     string // of the place that leaves them out
	names     string // of the limits at that place
	what      string // such as "tpm of the resource"
	many      bool   // more than one limit is left out
	from      string // the entities for which they do not apply, or "" for all
	resources []string
}

// leftOutWarnings returns a warning for each place whose limits leave out limits of a weaker level.
// Because the first level that has limits applies as a whole, a limit that is left out there does not
// apply at all. Places that leave out the same for several resources get one warning.
func (m *Manifest) leftOutWarnings() []Warning {
	var found []*leftOut
	index := map[leftOutKey]*leftOut{}
	for _, h := range Hidden(m.Definitions) {
		what, many := h.leavesOut()
		if what == "" {
			continue
		}
		field, limits := m.placeOf(&h)
		key := leftOutKey{field, what, h.who()}
		l := index[key]
		if l == nil {
			l = &leftOut{field: field, names: limitNames(limits), what: what, many: many, from: key.from}
			index[key] = l
			found = append(found, l)
		}
		l.resources = append(l.resources, h.where())
	}
	var all []Warning
	for _, l := range found {
		all = append(all, m.warning(l.field, l.names, l.reason()))
	}
	return all
}

// leftOutKey tells apart what gets warnings of its own.
type leftOutKey struct{ field, what, from string }

// placeOf returns the limits that hide others, and their path. For several entities, these are the
// limits of the first.
func (m *Manifest) placeOf(h *HiddenLimits) (field string, limits []weir.Limit) {
	if h.Level == weir.LevelResource {
		return "resources." + h.Resource + ".limits", m.Definitions.Resources[h.Resource]
	}
	entity, resource := h.Entities[0], h.Resource
	if h.Level == weir.LevelEntityDefault {
		resource = weir.DefaultResource
	}
	return "entities." + entity + ".resources." + resource + ".limits",
		m.Definitions.Entities[entity].Limits[resource]
}

// leavesOut returns the limits that do not apply because of the level that applies, such as "tpm of
// the resource", and whether they are several. A limit of the system that the resource leaves out too
// is not among them, because the resource gets a warning of its own.
func (h *HiddenLimits) leavesOut() (what string, many bool) {
	var parts []string
	seen := map[string]bool{}
	resource := false
	for _, l := range h.Hidden {
		if l.Level == weir.LevelSystem && resource {
			break
		}
		resource = l.Level == weir.LevelResource
		names := slices.DeleteFunc(slices.Clone(l.Lost), func(name string) bool { return seen[name] })
		for _, name := range names {
			seen[name] = true
		}
		if len(names) > 0 {
			parts = append(parts, clip.Names(names)+" of "+levelName(l.Level))
		}
	}
	return strings.Join(parts, " and "), len(seen) > 1
}

// levelName returns a weaker level as text.
func levelName(l weir.Level) string {
	switch l {
	case weir.LevelEntityDefault:
		return "the entity's " + weir.DefaultResource
	case weir.LevelResource:
		return "the resource"
	}
	return "the system"
}

// limitNames returns the names of limits as text.
func limitNames(limits []weir.Limit) string {
	var names []string
	for i := range limits {
		names = append(names, limits[i].Name)
	}
	return clip.Names(names)
}

// reason returns the text of the warning.
func (l *leftOut) reason() string {
	of, again := "", "it here too if it"
	if l.from != "" {
		of = " for " + l.from
	}
	if l.many {
		again = "them here too if they"
	}
	return fmt.Sprintf("leaves out %s: the limits here replace all weaker ones%s on %s, so write %s must apply",
		l.what, of, clip.Names(l.resources), again)
}
