package declared

import (
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/clip"
)

// merger makes the configuration that a store should have from the one that it has: with what the
// file has, without what was managed and is no longer in the file, and with all else.
type merger struct {
	stored  *weir.Definitions
	file    *weir.Definitions
	sets    *declare.Managed // by the file
	managed *declare.Managed // before
	// foreign are the resources on which an entity has settings that no file manages or can say.
	foreign map[string][]string
	out     *weir.Definitions
	kept    []httpapi.LimitsNote
}

// merge returns the configuration, and the entities that are kept although the file no longer has
// them.
func merge(
	all *declare.Definitions, f *file, managed *declare.Managed,
) (*weir.Definitions, []httpapi.LimitsNote) {
	stored := all.Definitions
	m := &merger{
		stored: stored, file: f.definitions, sets: &f.sets, managed: managed,
		foreign: map[string][]string{},
	}
	for i := range all.Foreign {
		at := all.Foreign[i].At
		if at.Entity != "" && at.Resource != "" && !managed.Has(at) && !f.sets.Has(at) {
			m.foreign[at.Entity] = append(m.foreign[at.Entity], at.Resource)
		}
	}
	m.out = &weir.Definitions{
		OnUnavailable: stored.OnUnavailable, Retention: stored.Retention,
		System:    m.limits(weir.Subject{}, stored.System, f.definitions.System),
		Resources: map[string][]weir.Limit{}, Entities: map[string]weir.EntityDefinition{},
	}
	switch {
	case f.sets.Policy:
		m.out.OnUnavailable = f.definitions.OnUnavailable
	case managed.Policy:
		m.out.OnUnavailable = weir.Block // the default
	}
	for _, r := range []struct{ to, from **int64 }{
		{&m.out.Retention.UsageDays, &f.definitions.Retention.UsageDays},
		{&m.out.Retention.AuditDays, &f.definitions.Retention.AuditDays},
		{&m.out.Retention.TTLMultiplier, &f.definitions.Retention.TTLMultiplier},
	} {
		if *r.from != nil {
			*r.to = *r.from
		}
	}
	for _, name := range bothKeys(stored.Resources, f.definitions.Resources) {
		at := weir.Subject{Resource: name}
		limits := m.limits(at, stored.Resources[name], f.definitions.Resources[name])
		if len(limits) > 0 {
			m.out.Resources[name] = limits
		}
	}
	m.entities()
	return m.out, m.kept
}

// limits returns the limits that a place should have.
func (m *merger) limits(at weir.Subject, stored, file []weir.Limit) []weir.Limit {
	switch {
	case len(file) > 0:
		return file
	case m.managed.Has(at):
		return nil
	}
	return stored
}

// entities adds the entities.
func (m *merger) entities() {
	gone := map[string]bool{} // entities that nothing keeps so far
	for _, name := range bothKeys(m.stored.Entities, m.file.Entities) {
		was, is := m.stored.Entities[name], m.file.Entities[name]
		e := withoutLimits(was)
		if m.sets.HasEntity(name) {
			e = withoutLimits(is)
		}
		e.Limits = map[string][]weir.Limit{}
		for _, resource := range bothKeys(was.Limits, is.Limits) {
			at := weir.Subject{Entity: name, Resource: resource}
			if limits := m.limits(at, was.Limits[resource], is.Limits[resource]); len(limits) > 0 {
				e.Limits[resource] = limits
			}
		}
		if m.managed.HasEntity(name) && !m.sets.HasEntity(name) {
			own := slices.AppendSeq(slices.Clone(m.foreign[name]), maps.Keys(e.Limits))
			if len(own) == 0 {
				gone[name] = true
				continue
			}
			slices.Sort(own)
			m.keep(name, "has limits that no file manages, on "+clip.Names(slices.Compact(own)))
		}
		m.out.Entities[name] = e
	}
	m.keepParents(gone)
}

// keepParents keeps entities that are the parent of one that stays.
func (m *merger) keepParents(gone map[string]bool) {
	for again := true; again; {
		again = false
		for _, child := range slices.Sorted(maps.Keys(m.out.Entities)) {
			parent := m.out.Entities[child].Parent
			if !gone[parent] {
				continue
			}
			delete(gone, parent)
			was := m.stored.Entities[parent]
			m.out.Entities[parent] = withoutLimits(was)
			m.keep(parent, "is the parent of "+child+", which stays")
			again = true
		}
	}
}

func (m *merger) keep(name, reason string) {
	m.kept = append(m.kept, httpapi.LimitsNote{
		Path: "entities." + name, Reason: "stays, and is no longer managed: it " + reason,
	})
}

// bothKeys returns the keys of both maps, in order.
func bothKeys[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// withoutLimits returns a definition without its limits.
func withoutLimits(e weir.EntityDefinition) weir.EntityDefinition {
	e.Limits, e.Version = nil, ""
	return e
}
