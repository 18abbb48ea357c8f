package config

import (
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/internal/schema"
)

// The reasons why a limits file cannot say a setting.
const (
	foreignAccess  = "switches the limits off or on here, which a limits file cannot say"
	foreignCascade = "says for one place whether to charge the parent, which a limits file cannot say"
	foreignItem    = "cannot be read"
)

// foreignField returns what an attribute of a limit is, by the last part of its name.
func foreignField(field string) string {
	what := "is a part of a limit that weir does not know"
	switch field {
	case schema.AttrSched, schema.AttrRSched, schema.AttrSchedTZ:
		what = "is a schedule"
	case schema.FieldSoft:
		what = "makes the limit soft"
	case schema.FieldRefill:
		what = "is 0: the limit is a quota that only a schedule fills"
	}
	return what + ", which a limits file cannot say"
}

// windowPrefix begins the attributes of a limit with a window that begins with its first use.
const windowPrefix = "w_"

// Foreign returns the settings of a level that a limits file cannot say.
func (l *Level) Foreign(at weir.Subject) []declare.Foreign {
	if l.config == nil {
		if l.Fault == nil {
			return nil
		}
		return []declare.Foreign{{
			Path: pathOf(at), At: at, Reason: foreignItem + ": " + l.Fault.Error(), HidesWeaker: true,
		}}
	}
	c := l.config
	path := placeName(c)
	var found []declare.Foreign
	add := func(path, attribute, reason string, hides bool) {
		found = append(found, declare.Foreign{
			Path: path, At: at, Attribute: attribute, Reason: reason, HidesWeaker: hides,
		})
	}
	if c.Access != schema.AccessInherit {
		add(path, schema.AttrDisabled, foreignAccess, false)
	}
	if c.Cascade != nil {
		add(path, schema.AttrCascade, foreignCascade, false)
	}
	for i := range c.Limits {
		stored := &c.Limits[i]
		limit := path + ".limits." + stored.Name
		for _, field := range stored.Unjudged {
			add(limit, schema.LimitAttribute(stored.Name, field), foreignField(field), true)
		}
		if _, err := toLimit(stored, path); err != nil && len(stored.Unjudged) == 0 {
			attribute := schema.LimitAttribute(stored.Name, schema.FieldCapacity)
			add(limit, attribute, "has values that weir cannot enforce", true)
		}
	}
	last := ""
	for _, attribute := range c.Unjudged {
		end := strings.LastIndexByte(attribute, '_')
		switch {
		case attribute == schema.AttrDisabled:
			add(path, attribute, foreignAccess, false)
		case !strings.HasPrefix(attribute, windowPrefix) || end < len(windowPrefix):
			add(path, attribute, foreignField(attribute), true)
		case attribute[:end] != last: // the attributes of one limit are adjacent
			last = attribute[:end]
			add(path+".limits."+last[len(windowPrefix):], last,
				"is a limit with a window from its first use, which a limits file cannot say", true)
		}
	}
	return found
}

// pathOf returns a place as a limits file names it.
func pathOf(at weir.Subject) string {
	return placeName(&schema.Config{Entity: at.Entity, Resource: at.Resource})
}
