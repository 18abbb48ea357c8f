package dynamodb

import (
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// entityConfig is all that the table has configured for one entity itself.
type entityConfig struct {
	// entity is the META; nil if there is none.
	entity *schema.Entity
	// levels are its configurations by resource, [weir.DefaultResource] among them.
	levels map[string]*levelConfig
}

// readDefinition reads META and the configurations of an entity, consistently.
func (s *Store) readDefinition(ctx context.Context, name string) (*entityConfig, error) {
	in := &ddb.QueryInput{
		ConsistentRead:           new(true),
		KeyConditionExpression:   new("#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2"), // usage comes behind META
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK, "#n1": schema.AttrSK},
		ExpressionAttributeValues: schema.Item{
			":v0": schema.String(schema.EntityPK(s.namespace, name)),
			":v1": schema.String(schema.SKConfig), ":v2": schema.String(schema.SKMeta),
		},
	}
	d := &entityConfig{levels: make(map[string]*levelConfig)}
	for page, err := range s.queryPages(ctx, in) {
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

// ReadEntity returns what is configured for an entity, or nil if it is not declared. Limits that
// weir cannot judge by are not in it; Options.OnError is told of them.
func (s *Store) ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.running.end()
	d, err := s.readDefinition(ctx, name)
	if err != nil || !d.declared() {
		return nil, err
	}
	out := &weir.EntityDefinition{Limits: make(map[string][]weir.Limit)}
	if d.entity != nil && d.entity.Parent != "" {
		out.Parent, out.Cascade = d.entity.Parent, d.entity.Cascade
	}
	for resource, l := range d.levels {
		if len(l.limits) > 0 {
			out.Limits[resource] = l.limits
		}
		if l.fault != nil && s.options.OnError != nil {
			s.options.OnError(l.fault)
		}
	}
	return out, nil
}
