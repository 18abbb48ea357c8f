package weir

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// DefaultResource is the pseudo-resource under which an entity's limits for every resource without
// limits of its own are kept.
const DefaultResource = "_default_"

// Policy says what a reservation becomes when the store does not answer.
type Policy string

// The policies.
const (
	// Block returns an error with code [Unavailable].
	Block Policy = "block"
	// Allow returns a lease marked degraded, whose verbs do nothing.
	Allow Policy = "allow"
)

// Definitions are a whole configuration: what a limits file declares. Treat a value as unchangeable
// once it has been handed over.
type Definitions struct {
	// OnUnavailable is the policy for when the store does not answer. Default: Block.
	OnUnavailable Policy
	// System are the limits of every (entity, resource) without others.
	System []Limit
	// Resources are the limits of each resource.
	Resources map[string][]Limit
	// Entities are those that have limits of their own, a parent, or children.
	Entities map[string]EntityDefinition
}

// EntityDefinition is what is configured for one entity.
type EntityDefinition struct {
	// Parent is the entity above; empty if there is none.
	Parent string
	// Cascade makes every charge on the entity a charge on its parent too. Default: false.
	Cascade bool
	// Limits are the entity's own, by resource; [DefaultResource] stands for every other one.
	Limits map[string][]Limit
}

// Normalize returns a copy with defaults filled in and limits in the order of their names, or every
// mistake in it, joined: malformed names, limits that are wrong or given twice, parents that do not
// exist, and cycles. Entities may contain '/' here; a store that cannot take them refuses them.
func (d *Definitions) Normalize() (*Definitions, error) {
	var errs []error
	out := &Definitions{
		OnUnavailable: d.OnUnavailable,
		Resources:     make(map[string][]Limit, len(d.Resources)),
		Entities:      make(map[string]EntityDefinition, len(d.Entities)),
	}
	if out.OnUnavailable == "" {
		out.OnUnavailable = Block
	}
	if out.OnUnavailable != Block && out.OnUnavailable != Allow {
		errs = append(errs, invalid("system.on_unavailable", string(d.OnUnavailable), "must be block or allow"))
	}
	var err error
	if out.System, err = NormalizeLimits("system.limits", d.System); err != nil {
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		limits, err := normalizeResource("resources."+name, name, d.Resources[name])
		if err != nil {
			errs = append(errs, err)
		}
		out.Resources[name] = limits
	}
	names := slices.Sorted(maps.Keys(d.Entities))
	for _, name := range names {
		e, err := d.normalizeEntity(name)
		if err != nil {
			errs = append(errs, err)
		}
		out.Entities[name] = e
	}
	if err := d.checkCycles(names); err != nil {
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

func normalizeResource(field, name string, limits []Limit) ([]Limit, error) {
	if reason := identifier.CheckResource(name); reason != "" {
		return nil, invalid(field, name, reason)
	}
	return NormalizeLimits(field+".limits", limits)
}

func (d *Definitions) normalizeEntity(name string) (EntityDefinition, error) {
	e := d.Entities[name]
	field := "entities." + name
	var errs []error
	if reason := identifier.CheckEntity(name, true); reason != "" {
		errs = append(errs, invalid(field, name, reason))
	}
	if e.Cascade && e.Parent == "" {
		errs = append(errs, invalid(field+".cascade", true, "needs a parent"))
	}
	if err := d.checkParent(name); err != nil {
		errs = append(errs, err)
	}
	out := EntityDefinition{Parent: e.Parent, Cascade: e.Cascade, Limits: make(map[string][]Limit, len(e.Limits))}
	for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
		f := field + ".resources." + resource
		var limits []Limit
		var err error
		if resource == DefaultResource {
			limits, err = NormalizeLimits(f+".limits", e.Limits[resource])
		} else {
			limits, err = normalizeResource(f, resource, e.Limits[resource])
		}
		if err != nil {
			errs = append(errs, err)
		}
		out.Limits[resource] = limits
	}
	return out, errors.Join(errs...)
}

// checkParent refuses an entity's parent that does not exist.
func (d *Definitions) checkParent(name string) error {
	parent := d.Entities[name].Parent
	if _, ok := d.Entities[parent]; parent == "" || ok {
		return nil
	}
	return invalid("entities."+name+".parent", parent, "is not declared among the entities")
}

// checkCycles refuses chains of parents that lead back to where they began, each once. Every entity
// is visited once, however long the chains are.
func (d *Definitions) checkCycles(names []string) error {
	var errs []error
	chain := make(map[string]string, len(names)) // who was visited first on the way to it
	for _, name := range names {
		at := name
		for at != "" && chain[at] == "" {
			chain[at] = name
			at = d.Entities[at].Parent
		}
		if at != "" && chain[at] == name {
			errs = append(errs, invalid("entities."+at+".parent", d.Entities[at].Parent,
				fmt.Sprintf("leads back to %q: a cycle", clip.Text(at))))
		}
	}
	return errors.Join(errs...)
}

// Config returns what the definitions say of a subject. It answers [driver.ConfigReader] for stores
// whose configuration is held in process.
func (d *Definitions) Config(s Subject) *Config {
	c := &Config{OnUnavailable: d.OnUnavailable}
	e, ok := d.Entities[s.Entity]
	c.Known, c.Parent, c.Cascade = ok, e.Parent, e.Cascade
	for _, l := range []LevelLimits{
		{LevelEntity, e.Limits[s.Resource]},
		{LevelEntityDefault, e.Limits[DefaultResource]},
		{LevelResource, d.Resources[s.Resource]},
		{LevelSystem, d.System},
	} {
		if len(l.Limits) > 0 {
			c.Levels = append(c.Levels, l)
		}
	}
	return c
}

// Entity returns a copy of what the definitions say of an entity, or nil. It answers
// [driver.EntityReader] for stores whose configuration is held in process, as List does.
func (d *Definitions) Entity(name string) *EntityDefinition {
	e, ok := d.Entities[name]
	if !ok {
		return nil
	}
	e.Limits = maps.Clone(e.Limits)
	for resource, limits := range e.Limits {
		e.Limits[resource] = slices.Clone(limits)
	}
	return &e
}

// List returns a page of the declared entities, in the order of their names.
func (d *Definitions) List(q *EntityQuery) *EntityPage {
	var names []string
	for name, e := range d.Entities {
		if name > q.After && (q.Parent == "" || e.Parent == q.Parent) &&
			(q.Resource == "" || len(e.Limits[q.Resource]) > 0) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	page := &EntityPage{Names: names}
	if len(names) > q.Size {
		page.Names = names[:q.Size:q.Size]
		page.Next = page.Names[q.Size-1]
	}
	return page
}

// ResourcesOf returns, in order, the resources on which an entity has limits of its own or
// something in use. It answers [driver.SubjectLister] for stores whose configuration is held in
// process, as EntitiesOn does.
func (d *Definitions) ResourcesOf(entity string, inUse iter.Seq[Subject]) []string {
	found := make(map[string]bool)
	for resource, limits := range d.Entities[entity].Limits {
		if resource != DefaultResource && len(limits) > 0 {
			found[resource] = true
		}
	}
	for s := range inUse {
		if s.Entity == entity {
			found[s.Resource] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// EntitiesOn returns, in order, the entities that have limits of their own on a resource or
// something in use on it.
func (d *Definitions) EntitiesOn(resource string, inUse iter.Seq[Subject]) []string {
	found := make(map[string]bool)
	for name, e := range d.Entities {
		if len(e.Limits[resource]) > 0 {
			found[name] = true
		}
	}
	for s := range inUse {
		if s.Resource == resource {
			found[s.Entity] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// All calls yield with every limit in the definitions and the field it stands in.
func (d *Definitions) All(yield func(field string, l *Limit) bool) {
	each := func(field string, limits []Limit) bool {
		for i := range limits {
			if !yield(field+"."+limits[i].Name, &limits[i]) {
				return false
			}
		}
		return true
	}
	if !each("system.limits", d.System) {
		return
	}
	for _, r := range slices.Sorted(maps.Keys(d.Resources)) {
		if !each("resources."+r+".limits", d.Resources[r]) {
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		limits := d.Entities[name].Limits
		for _, r := range slices.Sorted(maps.Keys(limits)) {
			if !each("entities."+name+".resources."+r+".limits", limits[r]) {
				return
			}
		}
	}
}

// EntityQuery says which entities to list. The zero value lists all, from the first.
type EntityQuery struct {
	// Parent restricts the list to the children of an entity. Default: any.
	Parent string
	// Resource restricts the list to entities with limits of their own on it; [DefaultResource]
	// for those on every other one. Default: any.
	Resource string
	// After is the Next of the page before. Default: begin with the first.
	After string
	// Size is how many names a page has at most, up to 1,000. Default: 100.
	Size int
}

// EntityPage is a part of a list of entities.
type EntityPage struct {
	// Names are in order.
	Names []string
	// Next is the After of the next page; empty at the end.
	Next string
}

// Config is what is configured for one subject, level by level.
type Config struct {
	// Levels has the stored levels that have limits, the strongest first.
	Levels []LevelLimits
	// Parent and Cascade are the entity's; Known is whether the entity was declared.
	Parent  string
	Cascade bool
	Known   bool
	// OnUnavailable is the system's policy; empty if none is set.
	OnUnavailable Policy
	// Version stands for when the read began; a larger one is newer. It is the store's own: the
	// limiter keeps it with what it resolves and hands it back in each [driver.Judged.Version]. 0
	// where the store does not look at it.
	Version uint64
}
