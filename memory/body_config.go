package memory

import (
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/internal/metadata"
)

// The smallest size of an element of a configuration in a body, in bytes.
const (
	minName       = 1
	minLimit      = 1
	minDefinition = 5
)

// keptConfig is the configuration as a snapshot has it, with the record of what a limits file
// manages.
type keptConfig struct {
	// has is false if a program gives the store its configuration, or if there is none.
	has         bool
	definitions *weir.Definitions
	declared    declare.Record
}

// kept returns what a snapshot has of the configuration, and the audit as it was then.
func (s *Store) kept() (keptConfig, []auditEvent) {
	s.editing.Lock()
	defer s.editing.Unlock()
	k := keptConfig{definitions: s.config.Load().whole(), declared: s.declared}
	d := k.definitions
	empty := len(d.System)+len(d.Resources)+len(d.Entities) == 0 && d.OnUnavailable != weir.Allow &&
		k.declared.Apply == nil && k.declared.Managed.Empty()
	k.has = !s.given && !empty
	return k, s.audit.list()
}

// decodeConfig loads the configuration, unless the store was given one.
func (s *SnapshotStore) decodeConfig(c *codec) error {
	k := keptConfig{definitions: &weir.Definitions{}}
	c.config(&k)
	if s.ownLimits = k.has; !k.has || c.failed || s.store.given {
		return nil
	}
	s.store.editing.Lock()
	defer s.store.editing.Unlock()
	s.store.declared = k.declared
	return s.store.configure(k.definitions)
}

func (c *codec) config(k *keptConfig) {
	c.flags(&k.has)
	if !k.has {
		return
	}
	d := k.definitions
	allow := d.OnUnavailable == weir.Allow
	c.flags(&allow)
	if c.reading && allow {
		d.OnUnavailable = weir.Allow
	}
	c.levelLimits(&d.System)
	named(c, &d.Resources, minName+1, c.levelLimits)
	named(c, &d.Entities, minDefinition, c.definition)
	c.declared(&k.declared)
}

func (c *codec) levelLimits(limits *[]weir.Limit) {
	for i := range list(c, limits, minLimit) {
		if !c.reading {
			c.writeLimit(&(*limits)[i])
			continue
		}
		var l *weir.Limit
		c.limit(&l)
		(*limits)[i] = *l
	}
}

func (c *codec) definition(e *weir.EntityDefinition) {
	c.name(&e.Parent)
	c.flags(&e.Cascade)
	c.text(&e.Name)
	data := ""
	if len(e.Metadata) > 0 {
		data = metadata.JSON(e.Metadata)
	}
	if c.text(&data); c.reading && data != "" {
		var err error
		e.Metadata, err = metadata.Parse([]byte(data))
		c.check(err == nil)
	}
	named(c, &e.Limits, minName+1, c.levelLimits)
}

// declared encodes the record of what a limits file manages. No other program writes it here.
func (c *codec) declared(r *declare.Record) {
	m := &r.Managed
	c.flags(&m.System, &m.Policy, &m.Retention)
	c.nameList(&m.Resources)
	c.nameList(&m.Entities)
	named(c, &m.Limits, minName+1, c.nameList)
	c.text(&r.Hash)
	c.time(&r.AppliedAt)
	c.text(&r.AppliedBy)
	c.varint(&r.Revision)
	c.nameList(&r.Again)
	marked := r.Apply != nil
	if c.flags(&marked); !marked {
		return
	}
	if c.reading {
		r.Apply = &declare.Mark{}
	}
	c.text(&r.Apply.ID)
	c.text(&r.Apply.By)
	c.time(&r.Apply.At)
}

func (c *codec) nameList(names *[]string) {
	for i := range list(c, names, minName) {
		c.name(&(*names)[i])
	}
}

// named encodes a map in the order of its keys; each encodes a value of at least size-1 bytes.
func named[V any](c *codec, m *map[string]V, size int, each func(v *V)) {
	if !c.reading {
		c.count(len(*m), size)
		for _, name := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[name]
			c.name(&name)
			each(&v)
		}
		return
	}
	n := c.count(0, size)
	*m = make(map[string]V, n)
	for range n {
		var name string
		var v V
		c.name(&name)
		each(&v)
		if _, again := (*m)[name]; !c.check(!again) {
			return
		}
		(*m)[name] = v
	}
}
