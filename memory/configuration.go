package memory

import (
	"maps"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/hash"
)

// configuration is a configuration in force. It is never changed, only replaced. So that replacing
// it takes little time however many resources and entities there are, each is in one of many small
// maps, and a change copies one of them. A change is checked alone: the rest was checked before.
type configuration struct {
	// system has the settings of the system, without resources and entities.
	system    weir.Definitions
	resources *parts[[]weir.Limit]
	entities  *parts[weir.EntityDefinition]
	// whole returns all of it. The first call takes time.
	whole func() *weir.Definitions
}

// newConfiguration returns normalized definitions as a configuration.
func newConfiguration(d *weir.Definitions) *configuration {
	c := &configuration{
		system: *d, resources: partsOf(d.Resources), entities: partsOf(d.Entities),
		whole: func() *weir.Definitions { return d },
	}
	c.system.Resources, c.system.Entities = nil, nil
	return c
}

// replaced returns a configuration of these parts.
func replaced(
	system weir.Definitions, resources *parts[[]weir.Limit], entities *parts[weir.EntityDefinition],
) *configuration {
	return &configuration{
		system: system, resources: resources, entities: entities,
		whole: sync.OnceValue(func() *weir.Definitions {
			d := system
			d.Resources, d.Entities = resources.all(), entities.all()
			return &d
		}),
	}
}

// around returns what is configured for a place: the settings of the system, the place's resource
// and its entity, and perhaps others.
func (c *configuration) around(at weir.Subject) weir.Definitions {
	d := c.system
	d.Resources, d.Entities = c.resources.part(at.Resource), c.entities.part(at.Entity)
	return d
}

// with returns the configuration with a place as it is in d, which has no other differences. An
// error is as that of [weir.Definitions.Normalize].
func (c *configuration) with(at weir.Subject, d *weir.Definitions) (*configuration, error) {
	changed := &weir.Definitions{}
	switch e, declared := d.Entities[at.Entity]; {
	case at.Entity != "" && declared:
		changed.Entities = map[string]weir.EntityDefinition{at.Entity: e}
		c.addAncestors(changed.Entities, e.Parent)
	case at.Entity != "":
	case at.Resource != "":
		changed.Resources = map[string][]weir.Limit{}
		if limits, ok := d.Resources[at.Resource]; ok {
			changed.Resources[at.Resource] = limits
		}
	default:
		*changed = *d
		changed.Resources, changed.Entities = nil, nil
	}
	normal, err := changed.Normalize()
	if err != nil {
		return nil, err
	}
	switch {
	case at.Entity != "":
		e, declared := normal.Entities[at.Entity]
		return replaced(c.system, c.resources, c.entities.with(at.Entity, e, declared)), nil
	case at.Resource != "":
		limits, ok := normal.Resources[at.Resource]
		return replaced(c.system, c.resources.with(at.Resource, limits, ok), c.entities), nil
	}
	system := *normal
	system.Resources, system.Entities = nil, nil
	return replaced(system, c.resources, c.entities), nil
}

// addAncestors adds an entity and its ancestors, as far as they are declared, with their parents
// alone: enough to find a cycle.
func (c *configuration) addAncestors(to map[string]weir.EntityDefinition, name string) {
	for name != "" {
		e, declared := c.entities.part(name)[name]
		if _, has := to[name]; has || !declared {
			return
		}
		to[name] = weir.EntityDefinition{Parent: e.Parent}
		name = e.Parent
	}
}

// parts is a map in many small ones, by the hash of the name. It is never changed.
type parts[V any] [256]map[string]V

func partAt(name string) int { return int(hash.Seed.String(name) >> 56) }

func partsOf[V any](all map[string]V) *parts[V] {
	p := &parts[V]{}
	for name, v := range all {
		at := partAt(name)
		if p[at] == nil {
			p[at] = make(map[string]V, len(all)/len(p)+1)
		}
		p[at][name] = v
	}
	return p
}

// part returns the small map that has a name if it is there.
func (p *parts[V]) part(name string) map[string]V { return p[partAt(name)] }

// with returns a copy with another value of a name, or without it if it is gone.
func (p *parts[V]) with(name string, v V, stays bool) *parts[V] {
	out, at := *p, partAt(name)
	part := make(map[string]V, len(p[at])+1)
	maps.Copy(part, p[at])
	if part[name] = v; !stays {
		delete(part, name)
	}
	out[at] = part
	return &out
}

// all returns one map.
func (p *parts[V]) all() map[string]V {
	n := 0
	for _, part := range p {
		n += len(part)
	}
	all := make(map[string]V, n)
	for _, part := range p {
		maps.Copy(all, part)
	}
	return all
}
