package dynamodb

import (
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

type consistentKey struct{}

// withConsistent makes [Store.ReadConfig] see every write before it, at twice the cost.
func withConsistent(ctx context.Context) context.Context {
	return context.WithValue(ctx, consistentKey{}, true)
}

// consistent reports whether the context asks for that.
func consistent(ctx context.Context) bool { return ctx.Value(consistentKey{}) != nil }

// configReader reads the configuration of one namespace.
type configReader struct {
	*tableClient
	namespace string
}

// subjectConfig is all that the table has configured for one subject.
type subjectConfig struct {
	subject weir.Subject
	// entity is the META; nil if there is none.
	entity *schema.Entity
	// levels are the strongest first; one for which the subject has no part is not there.
	levels []*levelConfig
	// also are the items that were read beside these; nil for one that is not there.
	also []schema.Item
}

// readSubject reads META and the levels of a subject with one BatchGetItem, and with it the items
// of also. What weir cannot judge by is no error here, see [subjectConfig.chargeable].
func (r *configReader) readSubject(
	ctx context.Context, of weir.Subject, consistent bool, also ...schema.Key,
) (*subjectConfig, error) {
	c := &subjectConfig{subject: of}
	var keys []schema.Key
	var levels []weir.Level
	add := func(level weir.Level, key schema.Key) {
		keys, levels = append(keys, key), append(levels, level)
	}
	if of.Entity != "" {
		if of.Resource != "" && of.Resource != weir.DefaultResource {
			add(weir.LevelEntity, schema.EntityConfigKey(r.namespace, of.Entity, of.Resource))
		}
		add(weir.LevelEntityDefault, schema.EntityConfigKey(r.namespace, of.Entity, weir.DefaultResource))
	}
	if of.Resource != "" && of.Resource != weir.DefaultResource {
		add(weir.LevelResource, schema.ResourceConfigKey(r.namespace, of.Resource))
	}
	add(weir.LevelSystem, schema.SystemConfigKey(r.namespace))
	if of.Entity != "" {
		keys = append(keys, schema.MetaKey(r.namespace, of.Entity))
	}
	items, err := r.batchGet(ctx, append(keys, also...), consistent)
	if err != nil {
		return nil, err
	}
	c.also = items[len(keys):]
	for i, level := range levels {
		c.levels = append(c.levels, parseLevel(level, items[i]))
	}
	if of.Entity != "" {
		c.entity, err = parseEntity(items[len(levels)])
	}
	return c, err
}

// parseEntity reads a META, which may be nil.
func parseEntity(item schema.Item) (*schema.Entity, error) {
	if item == nil {
		return nil, nil
	}
	e, err := schema.ParseEntity(item)
	if err != nil {
		return nil, unreadable(err)
	}
	return e, nil
}

// declared reports whether the entity is declared: by its META, or by limits of its own, since the
// Python library makes no META for these.
func (c *subjectConfig) declared() bool {
	if c.entity != nil {
		return true
	}
	for _, l := range c.levels {
		if (l.level == weir.LevelEntity || l.level == weir.LevelEntityDefault) && l.hasLimits() {
			return true
		}
	}
	return false
}

func (c *subjectConfig) parent() string {
	if c.entity == nil {
		return ""
	}
	return c.entity.Parent
}

// cascades reports whether a charge on the subject is one on the parent too: as the strongest level
// says that says anything of it, otherwise as META says.
func (c *subjectConfig) cascades() bool {
	if c.parent() == "" {
		return false
	}
	for _, l := range c.levels {
		if policy := l.cascade(); policy != nil && l.level != weir.LevelSystem {
			return *policy
		}
	}
	return c.entity.Cascade
}

// access is what the strongest level says that says anything of it. The system's has no say.
func (c *subjectConfig) access() schema.Access {
	for _, l := range c.levels {
		if a := l.access(); a != schema.AccessInherit && l.level != weir.LevelSystem {
			return a
		}
	}
	return schema.AccessInherit
}

// winner is the level that applies: the strongest that has limits; nil if none has.
func (c *subjectConfig) winner() *levelConfig {
	for _, l := range c.levels {
		if l.hasLimits() {
			return l
		}
	}
	return nil
}

// onUnavailable is the system's policy; empty if it has none.
func (c *subjectConfig) onUnavailable() weir.Policy {
	system := c.levels[len(c.levels)-1].config
	if system == nil {
		return ""
	}
	switch p := weir.Policy(system.OnUnavailable); p {
	case weir.Block, weir.Allow:
		return p
	}
	return ""
}

// chargeable refuses what weir must not judge: a subject that is switched off, and one whose limits
// say more than weir understands. Where the subject is only a part of one, nobody is charged on it.
func (c *subjectConfig) chargeable() error {
	s := c.subject
	if s.Entity != "" && s.Resource != "" && s.Resource != weir.DefaultResource {
		switch c.access() {
		case schema.AccessOff:
			return fault(weir.PermissionDenied, "resource", s.Resource,
				"is switched off on this table for entity "+s.Entity)
		case schema.AccessBypass:
			return fault(weir.Unsupported, "resource", s.Resource, "lets entity "+s.Entity+
				" through without limits (disabled = bypass), which weir does not: take that back")
		}
	}
	if l := c.winner(); l != nil {
		return l.fault
	}
	return nil
}

// entityConfig is all that the table has configured for one entity itself.
type entityConfig struct {
	// entity is the META; nil if there is none.
	entity *schema.Entity
	// levels are its configurations by resource, [weir.DefaultResource] among them.
	levels map[string]*levelConfig
}

// readDefinition reads META and the configurations of an entity, consistently.
func (r *configReader) readDefinition(ctx context.Context, name string) (*entityConfig, error) {
	in := &ddb.QueryInput{
		ConsistentRead:           new(true),
		KeyConditionExpression:   new("#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"), // usage comes behind META
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK, "#n1": schema.AttrSK},
		ExpressionAttributeValues: schema.Item{
			":v0": schema.String(schema.EntityPK(r.namespace, name)),
			":v1": schema.String(schema.SKConfig), ":v2": schema.String(schema.SKMeta),
		},
	}
	d := &entityConfig{levels: make(map[string]*levelConfig)}
	for page, err := range r.queryPages(ctx, in) {
		if err != nil {
			return nil, err
		}
		for _, item := range page {
			sk := textOf(item, schema.AttrSK)
			resource, isConfig := strings.CutPrefix(sk, schema.SKConfig+"#")
			switch {
			case sk == schema.SKMeta:
				if d.entity, err = parseEntity(item); err != nil {
					return nil, err
				}
			case isConfig:
				d.levels[resource] = parseLevel(weir.LevelEntity, item)
			}
		}
	}
	return d, nil
}

// declared reports whether the entity is declared, see [subjectConfig.known].
func (d *entityConfig) declared() bool {
	if d.entity != nil {
		return true
	}
	for _, l := range d.levels {
		if l.hasLimits() {
			return true
		}
	}
	return false
}
