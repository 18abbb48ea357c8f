package dynamodb

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// itemConfig are what the configuration says of a subject: the limits that its bucket items must have,
// and no others, by name.
type itemConfig struct {
	level  weir.Level
	limits []weir.Limit
	// fallback is true where the configuration says nothing, and these are the limits that the item
	// has.
	fallback bool
}

// newItemConfig returns the limits that a resolution requires.
func newItemConfig(r *weir.Resolved) *itemConfig {
	return &itemConfig{level: r.Level, limits: r.Limits}
}

// permanent reports whether bucket items under these terms are never deleted by themselves:
// somebody gave the entity limits of its own.
func (t *itemConfig) permanent() bool { return !schema.Expires(t.level) }

// limit returns the limit of that name, or nil.
func (t *itemConfig) limit(name string) *weir.Limit {
	for i := range t.limits {
		if t.limits[i].Name == name {
			return &t.limits[i]
		}
	}
	return nil
}

// matches reports whether the image has exactly the limits of the terms, as they are defined.
func (t *itemConfig) matches(m *image) bool {
	if len(m.limits) != len(t.limits) {
		return false
	}
	for i := range t.limits {
		c := m.limit(t.limits[i].Name)
		if c == nil || c.Incomplete || !c.matches(&t.limits[i]) {
			return false
		}
	}
	return true
}

// withConfig is the image under terms: limits that were changed are defined anew, those that were added
// are full, and those that were removed are gone.
func (m *image) withConfig(t *itemConfig, ghosts map[string]limitImage) *image {
	a := *m
	a.limits = make([]limitImage, 0, len(t.limits))
	for i := range t.limits {
		s := storedLimit(&t.limits[i])
		if was := m.limit(s.Name); was != nil && !was.Incomplete {
			c := *was
			c.Capacity, c.Refill, c.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
			a.limits = append(a.limits, c)
			continue
		}
		c := unusedLimit(s, m.shards)
		if ghost, ok := ghosts[s.Name]; ok {
			ghost.BucketLimit, ghost.missing = s, true
			c = ghost
		}
		a.limits = append(a.limits, c)
	}
	slices.SortFunc(a.limits, func(x, y limitImage) int { return strings.Compare(x.Name, y.Name) })
	return &a
}
