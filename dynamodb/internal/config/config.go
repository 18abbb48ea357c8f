// Package config reads the configuration of a namespace: the limits of each level and the records
// of entities, as they are stored.
//
// A [Reader] reads a [Subject], which is everything that applies to one subject, with one
// BatchGetItem, or an [Entity], which is everything configured for one entity, with one query. Both
// consist of [Level] values, one for each configuration item. A level that weir does not support is
// not an error of the read. It is kept as the level's Fault, because it matters only to charges for
// which that level wins; [Subject.Chargeable] returns it then.
//
// The values are read once and not changed, so there are no locks. A Reader remembers one value of
// the system's level, the TTL multiplier, in an atomic.
package config

import (
	"context"
	"strings"
	"sync/atomic"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Reader reads the configuration of one namespace.
type Reader struct {
	*client.Client
	Namespace string
	// ttlMultiplier is that of the system's configuration as it was read last; nil before that.
	ttlMultiplier atomic.Pointer[int64]
}

// TTLMultiplier returns the multiplier for [schema.BucketSeconds], as the system's configuration had
// it when this process read it last. No call is made for it: every read of a subject has it.
func (r *Reader) TTLMultiplier() int64 {
	if m := r.ttlMultiplier.Load(); m != nil {
		return *m
	}
	return schema.TTLMultiplier
}

// NoteTTLMultiplier remembers the multiplier of the system's configuration, which may be nil.
func (r *Reader) NoteTTLMultiplier(system *schema.Config) {
	if m := system.BucketTTLMultiplier(); m != r.TTLMultiplier() {
		r.ttlMultiplier.Store(&m)
	}
}

// Subject is the configuration of one subject.
type Subject struct {
	subject weir.Subject
	// Entity is the entity's record (META); nil if there is none.
	Entity *schema.Entity
	// Levels are in order, the strongest first. A level for which the subject has no part is left
	// out.
	Levels []*Level
	// Others are the other items that were read in the same call; nil for an item that does not
	// exist.
	Others []schema.Item
}

// ReadSubject reads the entity's record and the levels of a subject with one BatchGetItem, together
// with other items. A level that weir does not support is not an error here; see
// [Subject.Chargeable].
func (r *Reader) ReadSubject(
	ctx context.Context, of weir.Subject, consistent bool, also ...schema.Key,
) (*Subject, error) {
	c := &Subject{subject: of}
	var keys []schema.Key
	var levels []weir.Level
	add := func(level weir.Level, key schema.Key) {
		keys, levels = append(keys, key), append(levels, level)
	}
	if of.Entity != "" {
		if of.Resource != "" && of.Resource != weir.DefaultResource {
			add(weir.LevelEntity, schema.EntityConfigKey(r.Namespace, of.Entity, of.Resource))
		}
		add(weir.LevelEntityDefault, schema.EntityConfigKey(r.Namespace, of.Entity, weir.DefaultResource))
	}
	if of.Resource != "" && of.Resource != weir.DefaultResource {
		add(weir.LevelResource, schema.ResourceConfigKey(r.Namespace, of.Resource))
	}
	add(weir.LevelSystem, schema.SystemConfigKey(r.Namespace))
	if of.Entity != "" {
		keys = append(keys, schema.MetaKey(r.Namespace, of.Entity))
	}
	items, err := r.BatchGet(ctx, append(keys, also...), consistent)
	if err != nil {
		return nil, err
	}
	c.Others = items[len(keys):]
	for i, level := range levels {
		c.Levels = append(c.Levels, ParseLevel(level, items[i]))
	}
	if system := c.Levels[len(c.Levels)-1]; system.config != nil || system.Fault == nil {
		r.NoteTTLMultiplier(system.config)
	}
	if of.Entity != "" {
		c.Entity, err = client.Parse(items[len(levels)], schema.ParseEntity)
	}
	return c, err
}

// Declared reports whether the entity is declared: it has a record, or limits of its own, for which
// the Python library makes no record.
func (c *Subject) Declared() bool {
	if c.Entity != nil {
		return true
	}
	for _, l := range c.Levels {
		if (l.Level == weir.LevelEntity || l.Level == weir.LevelEntityDefault) && l.HasLimits() {
			return true
		}
	}
	return false
}

// Parent returns the parent in the entity's record; empty if it has none.
func (c *Subject) Parent() string {
	if c.Entity == nil {
		return ""
	}
	return c.Entity.Parent
}

// Cascades reports whether a charge on the subject is charged on the parent too. The strongest
// level that says either decides, and otherwise the entity's record.
func (c *Subject) Cascades() bool {
	if c.Parent() == "" {
		return false
	}
	for _, l := range c.Levels {
		if policy := l.cascade(); policy != nil && l.Level != weir.LevelSystem {
			return *policy
		}
	}
	return c.Entity.Cascade
}

// access returns the access that the strongest level sets. The system level does not count.
func (c *Subject) access() schema.Access {
	for _, l := range c.Levels {
		if a := l.access(); a != schema.AccessInherit && l.Level != weir.LevelSystem {
			return a
		}
	}
	return schema.AccessInherit
}

// Winner returns the strongest level that has limits; nil if none has.
func (c *Subject) Winner() *Level {
	for _, l := range c.Levels {
		if l.HasLimits() {
			return l
		}
	}
	return nil
}

// OnUnavailable returns the system's policy; empty if it has none.
func (c *Subject) OnUnavailable() weir.Policy {
	system := c.Levels[len(c.Levels)-1].config
	if system == nil {
		return ""
	}
	switch p := weir.Policy(system.OnUnavailable); p {
	case weir.Block, weir.Allow:
		return p
	}
	return ""
}

// Chargeable returns an error if the subject is disabled, or if the winning level has attributes
// that weir does not support; nil if weir can judge the subject.
func (c *Subject) Chargeable() error {
	s := c.subject
	if s.Entity != "" && s.Resource != "" && s.Resource != weir.DefaultResource {
		switch c.access() {
		case schema.AccessOff:
			return client.Fault(weir.PermissionDenied, "resource", s.Resource,
				"is disabled on this table for entity "+s.Entity)
		case schema.AccessBypass:
			return client.Fault(weir.Unsupported, "resource", s.Resource, "lets entity "+s.Entity+
				" through without limits (disabled = bypass), which weir does not support: remove that setting")
		}
	}
	if l := c.Winner(); l != nil {
		return l.Fault
	}
	return nil
}

// Entity is the configuration of one entity.
type Entity struct {
	// Entity is the entity's record (META); nil if there is none.
	Entity *schema.Entity
	// Levels are its limits by resource, including [weir.DefaultResource].
	Levels map[string]*Level
	// Meta and Items are the items of these as they were read; Meta is nil if there is none.
	Meta  schema.Item
	Items map[string]schema.Item
}

// Version returns the version of the entity; empty if it is not declared.
func (d *Entity) Version() string {
	if !d.Declared() {
		return ""
	}
	return schema.EntityVersion(d.Meta, d.Items)
}

// ReadDefinition reads the record and all limits of an entity, consistently.
func (r *Reader) ReadDefinition(ctx context.Context, name string) (*Entity, error) {
	in := &ddb.QueryInput{
		ConsistentRead:           new(true),
		KeyConditionExpression:   new("#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"), // usage sorts after META
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK, "#n1": schema.AttrSK},
		ExpressionAttributeValues: schema.Item{
			":v0": schema.String(schema.EntityPK(r.Namespace, name)),
			":v1": schema.String(schema.SKConfig), ":v2": schema.String(schema.SKMeta),
		},
	}
	d := &Entity{Levels: make(map[string]*Level), Items: make(map[string]schema.Item)}
	for page, err := range r.QueryPages(ctx, in) {
		if err != nil {
			return nil, err
		}
		for _, item := range page {
			sk := client.TextOf(item, schema.AttrSK)
			resource, isConfig := strings.CutPrefix(sk, schema.SKConfig+"#")
			switch {
			case sk == schema.SKMeta:
				if d.Entity, err = client.Parse(item, schema.ParseEntity); err != nil {
					return nil, err
				}
				d.Meta = item
			case isConfig:
				d.Levels[resource] = ParseLevel(weir.LevelEntity, item)
				d.Items[resource] = item
			}
		}
	}
	return d, nil
}

// Declared reports whether the entity is declared, as [Subject.Declared] does.
func (d *Entity) Declared() bool {
	if d.Entity != nil {
		return true
	}
	for _, l := range d.Levels {
		if l.HasLimits() {
			return true
		}
	}
	return false
}
