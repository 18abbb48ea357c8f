package config

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Level is what one level of the configuration says about a subject.
type Level struct {
	Level weir.Level
	// config is the item; nil if there is none, or none that can be read.
	config *schema.Config
	// Limits are those that weir can judge, by name.
	Limits []weir.Limit
	// Fault says why charges must not be judged by this level; nil if they may.
	Fault error
}

// ParseLevel reads the item of a level, which may be nil. What cannot be judged is a fault of the
// level, because it may not concern any charge.
func ParseLevel(level weir.Level, item schema.Item) *Level {
	l := &Level{Level: level}
	if item == nil {
		return l
	}
	c, err := schema.ParseConfig(item)
	if err != nil {
		l.Fault = client.Unreadable(err)
		return l
	}
	l.config = c
	place := placeName(c)
	for i := range c.Limits {
		stored := &c.Limits[i]
		limit, err := toLimit(stored, place)
		if err != nil {
			l.setFault(err)
			continue
		}
		l.Limits = append(l.Limits, limit)
	}
	for _, attribute := range c.Unjudged {
		if attribute != schema.AttrDisabled { // see access
			l.setFault(UnsupportedAttribute(place, attribute))
		}
	}
	slices.SortFunc(l.Limits, func(a, b weir.Limit) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// setFault keeps the first fault.
func (l *Level) setFault(err error) {
	if l.Fault == nil {
		l.Fault = err
	}
}

// HasLimits reports whether the level has limits, weir's or others, so that it wins over weaker
// ones.
func (l *Level) HasLimits() bool { return len(l.Limits) > 0 || l.Fault != nil }

// access returns what the level says about access. A word that weir does not know means what it
// means to older versions of the Python library: that the limits hold.
func (l *Level) access() schema.Access {
	switch {
	case l.config == nil:
		return schema.AccessInherit
	case slices.Contains(l.config.Unjudged, schema.AttrDisabled):
		return schema.AccessOn
	}
	return l.config.Access
}

// cascade returns what the level says about cascading; nil for nothing.
func (l *Level) cascade() *bool {
	if l.config == nil {
		return nil
	}
	return l.config.Cascade
}

// longestPeriod is a bound on stored seconds that keeps them inside of a [time.Duration].
const longestPeriod = 200 * 365 * 24 * 3600

// toLimit returns a stored limit as one of weir's, or an error that says why no limit of weir does
// the same.
func toLimit(l *schema.Limit, place string) (weir.Limit, error) {
	place += ".limits." + l.Name
	if len(l.Unjudged) > 0 {
		return weir.Limit{}, UnsupportedAttribute(place, l.Unjudged[0])
	}
	limit, err := weir.Limit{
		Name: l.Name, Kind: weir.Bucket, Capacity: l.Capacity, RefillAmount: l.Refill,
		RefillPeriod: time.Duration(min(l.Seconds, longestPeriod)) * time.Second,
	}.Normalize()
	if err != nil {
		return limit, &weir.Error{
			Code: weir.Unsupported, Field: place, Reason: "is a limit that weir cannot hold: set it anew", Err: err,
		}
	}
	return limit, nil
}

// UnsupportedAttribute returns the error for an attribute by which weir does not judge.
func UnsupportedAttribute(place, attribute string) error {
	return client.Fault(weir.Unsupported, place, attribute, "is nothing that weir can judge by, and without it "+
		"more might be admitted: set the limits anew without it, or charge here with the Python library alone")
}

// placeName returns the place of a configuration in the words of a limits file.
func placeName(c *schema.Config) string {
	switch {
	case c.Entity != "":
		return "entities." + c.Entity + ".resources." + c.Resource
	case c.Resource != "":
		return "resources." + c.Resource
	}
	return "system"
}
