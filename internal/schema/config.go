package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Config is a configuration item: the limits of a namespace, a resource or an entity.
type Config struct {
	Namespace string
	// Entity is whose configuration it is; empty for that of a resource or of the namespace.
	Entity string
	// Resource is what it is for; [DefaultResource] for an entity's default, empty for the
	// namespace.
	Resource string
	// Limits are the limits, by name.
	Limits []Limit
	// OnUnavailable is what to do while the table does not answer, "allow" or "block"; empty if it
	// is not said. Only a namespace has it.
	OnUnavailable string
	// RetentionDays is how long audit events are kept; 0 if it is not said. Only a namespace has
	// it.
	RetentionDays int64
	// Access is whether the level switches off, on, or lets all through; empty if it does not say.
	Access Access
	// Cascade is whether charges reach the parent; nil if the level does not say.
	Cascade *bool
	// Unjudged names the attributes whose meaning weir does not judge by, in order: all of limits
	// with windows of their own (w_…), and disabled where its value is unknown. See also
	// [Limit.Unjudged].
	Unjudged []string
	// Extra are all attributes that the fields do not stand for, as they were read. Where both say
	// something, the fields count.
	Extra Item
}

// Access is what the attribute disabled of a configuration item says.
type Access string

// What a level may say.
const (
	AccessInherit Access = ""         // nothing
	AccessOff     Access = "disabled" // true: nobody is let through
	AccessOn      Access = "enabled"  // false: as the limits say, whatever a weaker level wants
	AccessBypass  Access = bypassed   // "bypass": everybody is let through
)

// Key is the item's key.
func (c *Config) Key() Key {
	switch {
	case c.Entity != "":
		return EntityConfigKey(c.Namespace, c.Entity, c.Resource)
	case c.Resource != "":
		return ResourceConfigKey(c.Namespace, c.Resource)
	}
	return SystemConfigKey(c.Namespace)
}

// SetLimits replaces the limits. What else the item says of limits goes with them: schedules, and
// limits with windows of their own.
func (c *Config) SetLimits(limits []Limit) {
	c.Limits = slices.SortedFunc(slices.Values(limits), func(a, b Limit) int {
		return strings.Compare(a.Name, b.Name)
	})
	isLimits := func(attribute string) bool {
		_, _, plain := ParseLimitAttribute(attribute)
		_, _, window := parseWindowAttribute(attribute)
		return plain || window || attribute == AttrSchedTZ
	}
	c.Extra = maps.Clone(c.Extra) // the caller may still compare with what was read
	maps.DeleteFunc(c.Extra, func(attribute string, _ attributeValue) bool {
		return isLimits(attribute)
	})
	c.Unjudged = slices.DeleteFunc(slices.Clone(c.Unjudged), isLimits)
}

// Limit returns the limit of that name, or nil.
func (c *Config) Limit(name string) *Limit {
	for i := range c.Limits {
		if c.Limits[i].Name == name {
			return &c.Limits[i]
		}
	}
	return nil
}

// Item returns the item as it is stored.
func (c *Config) Item() Item {
	item := newItem(c.Extra, c.Key(), c.Namespace)
	if _, ok := item[AttrConfigVersion]; !ok {
		item[AttrConfigVersion] = Number(1) // it never counts, whatever its name says
	}
	if c.Resource != "" {
		item[AttrResource] = String(c.Resource)
	}
	if c.Entity != "" {
		item[AttrEntity] = String(c.Entity)
		item[AttrGSI3PK] = String(EntityConfigPK(c.Namespace, c.Resource))
		item[AttrGSI3SK] = String(c.Entity)
	}
	if c.OnUnavailable != "" {
		item[AttrOnUnavailable] = String(c.OnUnavailable)
	}
	if c.RetentionDays != 0 {
		item[AttrRetention] = Number(c.RetentionDays)
	}
	switch c.Access {
	case AccessOff, AccessOn:
		item[AttrDisabled] = Bool(c.Access == AccessOff)
	case AccessBypass:
		item[AttrDisabled] = String(bypassed)
	}
	if c.Cascade != nil {
		item[AttrCascade] = Bool(*c.Cascade)
	}
	for _, l := range c.Limits {
		item[LimitAttribute(l.Name, FieldCapacity)] = Number(l.Capacity)
		item[LimitAttribute(l.Name, FieldRefill)] = Number(l.Refill)
		item[LimitAttribute(l.Name, FieldPeriod)] = Number(l.Seconds)
	}
	return item
}

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
func (c *Config) readAccess(r *itemReader) {
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
func (c *Config) readLimits(r *itemReader) {
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
