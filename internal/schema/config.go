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
	// Entity is the entity configured; empty for a resource or the namespace.
	Entity string
	// Resource is the resource configured: [DefaultResource] for an entity's default, empty for the
	// namespace.
	Resource string
	// Limits are the limits, by name.
	Limits []Limit
	// OnUnavailable is the policy while the table does not answer, "allow" or "block"; empty if
	// unset. Only a namespace has it.
	OnUnavailable string
	// RetentionDays is the retention of audit events in days; 0 if unset. Only a namespace has it.
	RetentionDays int64
	// UsageRetentionDays is the retention of usage in days; 0 if unset, see [Config.UsageDays]. Only a
	// namespace has it, and only weir writes it.
	UsageRetentionDays int64
	// TTLMultiplier is the lifetime of a bucket item, as a multiple of the time in which its slowest
	// limit fills up; nil if unset, see [Config.BucketTTLMultiplier]. Only a namespace has it, and
	// only weir writes it.
	TTLMultiplier *int64
	// Access is the level's access; empty if unset.
	Access Access
	// Cascade says whether to charge the parent too; nil if unset.
	Cascade *bool
	// Edition is a random mark that a change on condition of a version requires to be as it was read;
	// empty if unset. Only weir writes it. The Python library replaces the whole item when it writes
	// limits, and so drops it; weir gives the item another one, or drops it. So it is another one
	// after every change of the limits.
	Edition string
	// Unjudged names the attributes that weir does not support, in order: those of limits with windows
	// of their own (w_…), and disabled if its value is unknown. See also [Limit.Unjudged].
	Unjudged []string
	// Extra are all attributes that no field holds, as they were read. If a field and Extra
	// disagree, the field counts.
	Extra Item
}

// Access is the attribute disabled of a configuration item.
type Access string

// The values of Access.
const (
	AccessInherit Access = ""         // unset
	AccessOff     Access = "disabled" // true: every request is refused
	AccessOn      Access = "enabled"  // false: the limits apply, whatever a weaker level says
	AccessBypass  Access = bypassed   // "bypass": every request is admitted
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

// AuditDays returns the retention of audit events in days: [RetentionDays] if c is nil, or if its
// value is unset or below 1.
func (c *Config) AuditDays() int64 {
	if c == nil || c.RetentionDays < 1 {
		return RetentionDays
	}
	return c.RetentionDays
}

// UsageDays returns the retention of usage in days: [UsageRetentionDays] if c is nil, or if its value
// is unset or below 1.
func (c *Config) UsageDays() int64 {
	if c == nil || c.UsageRetentionDays < 1 {
		return UsageRetentionDays
	}
	return c.UsageRetentionDays
}

// BucketTTLMultiplier returns the multiplier for [BucketSeconds]: [TTLMultiplier] if c is nil, or
// if its value is unset. With 0 or less, bucket items do not expire.
func (c *Config) BucketTTLMultiplier() int64 {
	if c == nil || c.TTLMultiplier == nil {
		return TTLMultiplier
	}
	return *c.TTLMultiplier
}

// SetLimits replaces the limits. It also removes the item's other attributes about limits:
// schedules, and limits with windows of their own.
func (c *Config) SetLimits(limits []Limit) {
	c.Limits = slices.SortedFunc(slices.Values(limits), func(a, b Limit) int {
		return strings.Compare(a.Name, b.Name)
	})
	isLimits := func(attribute string) bool {
		_, _, plain := ParseLimitAttribute(attribute)
		_, _, window := parseWindowAttribute(attribute)
		return plain || window || attribute == AttrSchedTZ
	}
	c.Extra = maps.Clone(c.Extra) // the caller may still use the map that was read
	maps.DeleteFunc(c.Extra, func(attribute string, _ attributeValue) bool {
		return isLimits(attribute)
	})
	c.Unjudged = slices.DeleteFunc(slices.Clone(c.Unjudged), isLimits)
}

// Limit returns the limit with that name, or nil.
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
		item[AttrConfigVersion] = Number(1) // the library never raises it
	}
	if c.Resource != "" {
		item[AttrResource] = String(c.Resource)
	}
	if c.Entity != "" {
		item[AttrEntity] = String(c.Entity)
		item[AttrGSI3PK] = String(EntityConfigPK(c.Namespace, c.Resource))
		item[AttrGSI3SK] = String(c.Entity)
	}
	setText(item, AttrEdition, c.Edition)
	if c.OnUnavailable != "" {
		item[AttrOnUnavailable] = String(c.OnUnavailable)
	}
	if c.RetentionDays != 0 {
		item[AttrRetention] = Number(c.RetentionDays)
	}
	if c.UsageRetentionDays != 0 {
		item[AttrUsageRetention] = Number(c.UsageRetentionDays)
	}
	if c.TTLMultiplier != nil {
		item[AttrTTLMultiplier] = Number(*c.TTLMultiplier)
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

// ParseConfig decodes a configuration item of any level, or returns a [*MalformedError]. It does
// not return a part of the limits: the missing ones would not be enforced.
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
	c.Edition = optional(r, AttrEdition, text)
	c.RetentionDays = optional(r, AttrRetention, number)
	c.UsageRetentionDays = optional(r, AttrUsageRetention, number)
	if _, ok := r.rest[AttrTTLMultiplier]; ok {
		c.TTLMultiplier = new(optional(r, AttrTTLMultiplier, number))
	}
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
			return malformed(item, AttrSK, "is not that of a configuration item")
		}
		c.Entity, c.Resource = entity, resource
		return nil
	case isResource && resource != "":
		c.Resource = resource
	case owner != systemPart:
		return malformed(item, AttrPK, "is not that of a configuration item")
	}
	if key.SK != SKConfig {
		return malformed(item, AttrSK, "is not that of a configuration item")
	}
	return nil
}

// readAccess decodes the attribute disabled. An unknown value stays in Extra.
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

// readLimits decodes the limits. A limit is found by its capacity.
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
