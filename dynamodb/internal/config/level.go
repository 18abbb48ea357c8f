package config

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Level is one level of the configuration of a subject.
type Level struct {
	Level weir.Level
	// config is the stored item; nil if it does not exist or cannot be parsed.
	config *schema.Config
	// Limits are the limits that weir can judge, by name.
	Limits []weir.Limit
	// Fault is the reason why charges cannot be judged by this level; nil if they can.
	Fault error
}

// ParseLevel parses the item of a level, which may be nil. A part that weir does not support
// becomes the Fault of the level, because it may not matter to any charge.
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
		if attribute != schema.AttrDisabled { // access takes care of it
			l.setFault(UnsupportedAttribute(place, attribute))
		}
	}
	slices.SortFunc(l.Limits, func(a, b weir.Limit) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// setFault sets Fault, unless there is one already.
func (l *Level) setFault(err error) {
	if l.Fault == nil {
		l.Fault = err
	}
}

// HasLimits reports whether the level has limits, including those that weir does not support. Such
// a level wins over weaker ones.
func (l *Level) HasLimits() bool { return len(l.Limits) > 0 || l.Fault != nil }

// access returns the access that the level sets. An unknown value counts as enabled, as it does for
// older versions of the Python library.
func (l *Level) access() schema.Access {
	switch {
	case l.config == nil:
		return schema.AccessInherit
	case slices.Contains(l.config.Unjudged, schema.AttrDisabled):
		return schema.AccessOn
	}
	return l.config.Access
}

// cascade returns the level's setting of cascade; nil if it has none.
func (l *Level) cascade() *bool {
	if l.config == nil {
		return nil
	}
	return l.config.Cascade
}

// longestPeriod bounds a stored period in seconds, so that it fits a [time.Duration].
const longestPeriod = 200 * 365 * 24 * 3600

// toLimit returns a stored limit as a weir.Limit, or an error that says why weir has no such limit.
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
			Code: weir.Unsupported, Field: place,
			Reason: "is a limit that weir cannot enforce: set it again", Err: err,
		}
	}
	return limit, nil
}

// UnsupportedAttribute returns the error for an attribute that weir does not support.
func UnsupportedAttribute(place, attribute string) error {
	return client.Fault(weir.Unsupported, place, attribute,
		"is an attribute that weir does not support, and without "+
			"it weir could admit too much: set the limits again without it, or use only the Python library here")
}

// placeName returns the place of a configuration as a limits file writes it.
func placeName(c *schema.Config) string {
	switch {
	case c.Entity != "":
		return "entities." + c.Entity + ".resources." + c.Resource
	case c.Resource != "":
		return "resources." + c.Resource
	}
	return "system"
}
