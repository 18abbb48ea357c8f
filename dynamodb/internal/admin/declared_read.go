package admin

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// allNames is the number of names that the index is asked for: more than any table has.
const allNames = 1_000_000

// ReadDefinitions returns the whole configuration. The names of entities come from an index,
// which lags behind; those in also are read in any case. Every place is then read consistently.
func (a *Admin) ReadDefinitions(
	ctx context.Context, also *declare.Managed,
) (*declare.Definitions, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	if also == nil {
		also = &declare.Managed{}
	}
	out := &declare.Definitions{Definitions: &weir.Definitions{
		Resources: map[string][]weir.Limit{}, Entities: map[string]weir.EntityDefinition{},
	}}
	if err := a.readSystem(ctx, out); err != nil {
		return nil, err
	}
	if err := a.readResources(ctx, out, also.Resources); err != nil {
		return nil, err
	}
	if err := a.readEntities(ctx, out, also); err != nil {
		return nil, err
	}
	return out, nil
}

// readSystem adds the configuration of the system.
func (a *Admin) readSystem(ctx context.Context, out *declare.Definitions) error {
	item, err := a.Client.GetItem(ctx, schema.SystemConfigKey(a.config.Namespace), true)
	if err != nil {
		return err
	}
	level := config.ParseLevel(weir.LevelSystem, item)
	out.Definitions.System = level.Limits
	out.Foreign = append(out.Foreign, level.Foreign(weir.Subject{})...)
	c, err := client.Parse(item, schema.ParseConfig)
	if err != nil || c == nil {
		return err
	}
	switch p := weir.Policy(c.OnUnavailable); p {
	case weir.Block, weir.Allow:
		out.Definitions.OnUnavailable = p
	}
	out.Definitions.Retention = retentionOf(c)
	if err := out.Definitions.Retention.Validate(); err != nil {
		out.Definitions.Retention = weir.Retention{}
		out.Foreign = append(out.Foreign, declare.Foreign{
			Path: "system.retention", Attribute: schema.AttrRetention, Reason: err.Error(),
		})
	}
	return nil
}

// readResources adds the limits of all resources: those in the registry, those that the index
// shows although no registry has them, and the named ones.
func (a *Admin) readResources(
	ctx context.Context, out *declare.Definitions, also []string,
) error {
	ns := a.config.Namespace
	listed, err := a.ConfiguredResources(ctx, true)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, name := range slices.Concat(listed, also) {
		found[name] = true
	}
	prefix := schema.ResourcePK(ns, "")
	in := client.KeysOnly(client.Indexed(schema.GSI4, ns, prefix))
	for page, err := range a.Client.QueryPages(ctx, in) {
		if err != nil {
			return err
		}
		for _, row := range page {
			found[strings.TrimPrefix(client.TextOf(row, schema.AttrPK), prefix)] = true
		}
	}
	names := slices.Sorted(maps.Keys(found))
	keys := make([]schema.Key, len(names))
	for i, name := range names {
		keys[i] = schema.ResourceConfigKey(ns, name)
	}
	items, err := a.Client.BatchGet(ctx, keys, true)
	if err != nil {
		return err
	}
	for i, name := range names {
		level := config.ParseLevel(weir.LevelResource, items[i])
		out.Foreign = append(out.Foreign, level.Foreign(weir.Subject{Resource: name})...)
		if len(level.Limits) > 0 {
			out.Definitions.Resources[name] = level.Limits
		}
	}
	return nil
}

// readEntities adds all entities: those that the index shows, and the named ones.
func (a *Admin) readEntities(
	ctx context.Context, out *declare.Definitions, also *declare.Managed,
) error {
	names := slices.Concat(also.Entities, slices.Collect(maps.Keys(also.Limits)))
	for name, err := range a.declaredNames(ctx, "", allNames) {
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	read := make([]*config.Entity, len(names))
	err := client.Parallel(len(names), func(i int) error {
		var err error
		read[i], err = a.config.ReadDefinition(ctx, names[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, name := range names {
		addEntity(out, name, read[i])
	}
	return nil
}

// addEntity adds an entity, unless it is not declared.
func addEntity(out *declare.Definitions, name string, read *config.Entity) {
	e := weir.EntityDefinition{Limits: map[string][]weir.Limit{}}
	if read.Entity != nil && read.Entity.Parent != "" {
		e.Parent, e.Cascade = read.Entity.Parent, read.Entity.Cascade
	}
	if read.Entity != nil {
		if e.Name = read.Entity.Name; e.Name == name {
			e.Name = ""
		}
		var others []string
		e.Metadata, others = plainMetadata(read.Entity)
		for _, key := range others {
			out.Foreign = append(out.Foreign, declare.Foreign{
				Path: "entities." + name + ".metadata." + key, At: weir.Subject{Entity: name},
				Attribute: schema.AttrMetadata, Reason: "is not JSON, as metadata must be in a limits file",
			})
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(read.Levels)) {
		level := read.Levels[resource]
		at := weir.Subject{Entity: name, Resource: resource}
		out.Foreign = append(out.Foreign, level.Foreign(at)...)
		if len(level.Limits) > 0 {
			e.Limits[resource] = level.Limits
		}
	}
	if read.Declared() {
		out.Definitions.Entities[name] = e
	}
}
