package schema

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type attributeValue = types.AttributeValue

// ParseConfig reads a configuration item of any level. One that cannot be read is a
// [*MalformedError]: a level of which only some limits were known would let through what the others
// forbid.
func ParseConfig(item Item) (*Config, error) {
	r := newReader(item)
	c := &Config{}
	r.keyError(c.parseKey(item, r.key))
	if r.err != nil {
		return nil, r.err
	}
	if c.Entity != "" {
		r.optionalSame(AttrEntity, c.Entity)
		r.drop(AttrGSI3PK, AttrGSI3SK)
	}
	if c.Resource != "" {
		r.optionalSame(AttrResource, c.Resource)
	}
	r.drop(AttrGSI4PK, AttrGSI4SK)
	if n, err := Int64(r.rest[AttrConfigVersion]); err == nil && n == 1 {
		r.drop(AttrConfigVersion)
	}
	c.OnUnavailable = optional(r, AttrOnUnavailable, text)
	c.RetentionDays = optional(r, AttrRetention, number)
	if _, ok := r.rest[AttrCascade]; ok {
		c.Cascade = new(optional(r, AttrCascade, truth))
	}
	c.readAccess(r)
	c.readLimits(r)
	for _, name := range r.names() {
		if _, _, window := parseWindowAttribute(name); window {
			c.Unjudged = append(c.Unjudged, name)
		}
	}
	slices.Sort(c.Unjudged)
	c.Extra = r.extra()
	return c, r.err
}

// parseKey reads the level from the key.
func (c *Config) parseKey(item Item, key Key) error {
	ns, owner, err := SplitNamespace(key.PK)
	if err != nil {
		return err
	}
	c.Namespace = ns
	entity, isEntity := strings.CutPrefix(owner, EntityPrefix)
	resource, isResource := strings.CutPrefix(owner, resourcePrefix)
	switch {
	case isEntity && entity != "":
		resource, ok := strings.CutPrefix(key.SK, SKConfig+"#")
		if !ok || resource == "" {
			return malformed(item, AttrSK, "is no configuration's")
		}
		c.Entity, c.Resource = entity, resource
		return nil
	case isResource && resource != "":
		c.Resource = resource
	case owner != systemPart:
		return malformed(item, AttrPK, "is no configuration's")
	}
	if key.SK != SKConfig {
		return malformed(item, AttrSK, "is no configuration's")
	}
	return nil
}

// readAccess reads what the level says of access. A value that weir does not know stays as it is.
func (c *Config) readAccess(r *reader) {
	switch v := r.rest[AttrDisabled].(type) {
	case nil:
		return
	case *types.AttributeValueMemberBOOL:
		c.Access = AccessOn
		if v.Value {
			c.Access = AccessOff
		}
		r.drop(AttrDisabled)
		return
	case *types.AttributeValueMemberS:
		if v.Value == bypassed {
			c.Access = AccessBypass
			r.drop(AttrDisabled)
			return
		}
	}
	c.Unjudged = append(c.Unjudged, AttrDisabled)
}

// readLimits reads the limits, which are found by their capacity.
func (c *Config) readLimits(r *reader) {
	for _, attribute := range r.names() {
		name, field, ok := ParseLimitAttribute(attribute)
		if !ok || field != FieldCapacity {
			continue
		}
		l := Limit{
			Name:     name,
			Capacity: required(r, attribute, above0),
			Refill:   required(r, LimitAttribute(name, FieldRefill), notBelow0),
			Seconds:  required(r, LimitAttribute(name, FieldPeriod), above0),
		}
		if l.Refill == 0 {
			l.Unjudged = append(l.Unjudged, FieldRefill)
		}
		c.Limits = append(c.Limits, l)
	}
	for _, attribute := range r.names() {
		name, field, ok := ParseLimitAttribute(attribute)
		if !ok || !unjudged(field, r.rest[attribute]) {
			continue
		}
		soft, isBool := r.rest[attribute].(*types.AttributeValueMemberBOOL)
		if field == FieldSoft && isBool && !soft.Value {
			continue
		}
		if l := c.Limit(name); l != nil {
			l.Unjudged = append(l.Unjudged, field)
		}
	}
	for i := range c.Limits {
		slices.Sort(c.Limits[i].Unjudged)
	}
	slices.SortFunc(c.Limits, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
}
