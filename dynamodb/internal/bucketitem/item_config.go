package bucketitem

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/schema"
)

// Config is the limits that a bucket item must have by the configuration, and no others.
type Config struct {
	level  weir.Level
	Limits []weir.Limit
	// fallback is true if no configuration applies and the limits are those of the item.
	fallback bool
}

// NewConfig returns the limits that a resolution requires. It keeps no reference to j except its
// limits.
func NewConfig(j *driver.Judged) *Config {
	return &Config{level: j.Level, Limits: j.Limits}
}

// permanent reports whether bucket items with these limits never expire, because the entity has
// limits of its own.
func (t *Config) permanent() bool { return !schema.Expires(t.level) }

// Limit returns the limit with that name, or nil.
func (t *Config) Limit(name string) *weir.Limit {
	for i := range t.Limits {
		if t.Limits[i].Name == name {
			return &t.Limits[i]
		}
	}
	return nil
}

// matches reports whether the image has exactly these limits, with these definitions.
func (t *Config) matches(m *Image) bool {
	if len(m.Limits) != len(t.Limits) {
		return false
	}
	for i := range t.Limits {
		c := m.Limit(t.Limits[i].Name)
		if c == nil || c.Incomplete || !c.Matches(&t.Limits[i]) {
			return false
		}
	}
	return true
}

// WithConfig returns the image with the limits of a configuration. Changed limits have the new
// definition. Added limits are full, or have the balance with which they were removed. Limits that
// the configuration does not have are gone.
func (m *Image) WithConfig(t *Config, removed map[string]LimitImage) *Image {
	a := *m
	a.Limits = make([]LimitImage, 0, len(t.Limits))
	for i := range t.Limits {
		s := StoredLimit(&t.Limits[i])
		if was := m.Limit(s.Name); was != nil && !was.Incomplete {
			c := *was
			c.Capacity, c.Refill, c.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
			a.Limits = append(a.Limits, c)
			continue
		}
		c := unusedLimit(s, m.Shards)
		if was, ok := removed[s.Name]; ok {
			was.BucketLimit, was.missing = s, true
			c = was
		}
		a.Limits = append(a.Limits, c)
	}
	slices.SortFunc(a.Limits, func(x, y LimitImage) int { return strings.Compare(x.Name, y.Name) })
	return &a
}
