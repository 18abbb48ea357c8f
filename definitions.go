package weir

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/internal/metadata"
	"github.com/weir-limiter/weir/internal/version"
)

// DefaultResource is the pseudo-resource of an entity's default limits, which apply on every
// resource on which the entity has no limits of its own.
const DefaultResource = "_default_"

// Policy decides what a reservation becomes if the store does not answer.
type Policy string

// The policies.
const (
	// Block returns an error with code [Unavailable].
	Block Policy = "block"
	// Allow returns a degraded lease: nothing is charged, and its methods do nothing.
	Allow Policy = "allow"
)

// Definitions are a whole configuration, as a limits file declares it. Do not change a value that
// has been passed to a limiter or a store.
type Definitions struct {
	// OnUnavailable is the policy if the store does not answer. Default: Block.
	OnUnavailable Policy
	// Retention says for how long the store keeps usage, the audit and idle buckets. A setting that is
	// nil is left as the store has it. Only a DynamoDB table has these settings; other stores refuse
	// them. Default: none.
	Retention Retention
	// System are the limits of every subject for which no other level has limits.
	System []Limit
	// Resources are the limits of each resource.
	Resources map[string][]Limit
	// Entities are the declared entities: those with limits of their own, a parent, or children.
	Entities map[string]EntityDefinition
}

// EntityDefinition is the configuration of one entity.
type EntityDefinition struct {
	// Parent is the entity above this one; empty if there is none.
	Parent string
	// Cascade makes every charge on the entity a charge on its parent too. Default: false.
	Cascade bool
	// Name is a name for people: any text of at most 1,024 bytes. Default: the entity's own.
	Name string
	// Metadata belong to the users of the entity. The values are strings; those that another program
	// has written may also be bools, int64s, json.Numbers, nil, and maps and slices of them. As
	// JSON they have at most 64 KiB. Default: none.
	Metadata map[string]any
	// Version is the entity's version when it was read, which covers its limits too. A definition
	// that is written needs none: see package change.
	Version string
	// Limits are the entity's own limits by resource; [DefaultResource] is for every other
	// resource.
	Limits map[string][]Limit
}

// Normalize returns a copy with defaults filled in and limits sorted by name, or every mistake in
// it, joined: malformed names, limits that are wrong or given twice, parents that are not declared,
// and cycles. Normalize admits '/' in the names of entities; a store that does not support it
// refuses such names.
func (d *Definitions) Normalize() (*Definitions, error) {
	var errs []error
	out := &Definitions{
		OnUnavailable: d.OnUnavailable,
		Retention:     d.Retention,
		Resources:     make(map[string][]Limit, len(d.Resources)),
		Entities:      make(map[string]EntityDefinition, len(d.Entities)),
	}
	if out.OnUnavailable == "" {
		out.OnUnavailable = Block
	}
	if out.OnUnavailable != Block && out.OnUnavailable != Allow {
		errs = append(errs, invalid("system.on_unavailable", string(d.OnUnavailable), "must be block or allow"))
	}
	if err := d.Retention.Validate(); err != nil {
		errs = append(errs, prefixField("system.retention", err))
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

// normalizeMetadata returns metadata in normal form.
func normalizeMetadata(field string, m map[string]any) (map[string]any, error) {
	normal, path, reason := metadata.Normalize(m)
	if reason == "" {
		return normal, nil
	}
	return nil, invalid(field+clip.Text(path), "", reason)
}

func (d *Definitions) normalizeEntity(name string) (EntityDefinition, error) {
	e := d.Entities[name]
	field := "entities." + name
	var errs []error
	if reason := identifier.CheckEntity(name); reason != "" {
		errs = append(errs, invalid(field, name, reason))
	}
	if e.Cascade && e.Parent == "" {
		errs = append(errs, invalid(field+".cascade", true, "needs a parent"))
	}
	if err := d.checkParent(name); err != nil {
		errs = append(errs, err)
	}
	out := EntityDefinition{
		Parent: e.Parent, Cascade: e.Cascade, Limits: make(map[string][]Limit, len(e.Limits)),
	}
	if reason := metadata.CheckName(e.Name); reason != "" {
		errs = append(errs, invalid(field+".name", e.Name, reason))
	} else if e.Name != name {
		out.Name = e.Name
	}
	var err error
	if out.Metadata, err = normalizeMetadata(field+".metadata", e.Metadata); err != nil {
		errs = append(errs, err)
	}
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

// checkParent refuses a parent that is not declared.
func (d *Definitions) checkParent(name string) error {
	parent := d.Entities[name].Parent
	if _, ok := d.Entities[parent]; parent == "" || ok {
		return nil
	}
	return invalid("entities."+name+".parent", parent, "is not declared among the entities")
}

// checkCycles reports each cycle of parents once. It visits every entity once, however long the
// chains are.
func (d *Definitions) checkCycles(names []string) error {
	var errs []error
	chain := make(map[string]string, len(names)) // the name from which each entity was first reached
	for _, name := range names {
		at := name
		for at != "" && chain[at] == "" {
			chain[at] = name
			at = d.Entities[at].Parent
		}
		if at != "" && chain[at] == name {
			errs = append(errs, invalid("entities."+at+".parent", d.Entities[at].Parent,
				fmt.Sprintf("leads back to %q, which is a cycle", clip.Text(at))))
		}
	}
	return errors.Join(errs...)
}

// Config returns what is configured for a subject. Stores that hold their configuration in the
// process implement [driver.ConfigReader] with it.
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

// LimitsAt returns the limits of exactly one place. A place is a [Subject] whose parts may be empty:
// with both empty it is the system, without an entity it is a resource.
func (d *Definitions) LimitsAt(at Subject) []Limit {
	switch {
	case at.Entity != "":
		return d.Entities[at.Entity].Limits[at.Resource]
	case at.Resource != "":
		return d.Resources[at.Resource]
	}
	return d.System
}

// Same reports whether two normalized definitions of an entity say the same. Versions do not count.
func (e EntityDefinition) Same(o EntityDefinition) bool {
	return e.Parent == o.Parent && e.Cascade == o.Cascade && e.Name == o.Name &&
		metadata.Equal(e.Metadata, o.Metadata) &&
		maps.EqualFunc(e.Limits, o.Limits, func(a, b []Limit) bool {
			return slices.EqualFunc(a, b, Limit.Same)
		})
}

// Entity returns a copy of what is configured for an entity, or nil. Stores that hold their
// configuration in the process implement [driver.EntityReader] with it and List.
func (d *Definitions) Entity(name string) *EntityDefinition {
	e, ok := d.Entities[name]
	if !ok {
		return nil
	}
	e.Limits = maps.Clone(e.Limits)
	for resource, limits := range e.Limits {
		e.Limits[resource] = slices.Clone(limits)
	}
	e.Metadata, e.Version = metadata.Clone(e.Metadata), ""
	e.Version = version.Of(e)
	return &e
}

// List returns a page of the declared entities, sorted by name.
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
// something in use. Stores that hold their configuration in the process implement
// [driver.SubjectLister] with it and EntitiesOn.
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

// ResourceNames returns, in order, the resources that have limits, and those of the subjects that
// are in use. Stores that hold their configuration in the process implement
// [driver.ResourceLister] with it.
func (d *Definitions) ResourceNames(inUse iter.Seq[Subject]) []string {
	found := make(map[string]bool)
	for name, limits := range d.Resources {
		if len(limits) > 0 {
			found[name] = true
		}
	}
	for _, e := range d.Entities {
		for name, limits := range e.Limits {
			if len(limits) > 0 && name != DefaultResource {
				found[name] = true
			}
		}
	}
	for s := range inUse {
		found[s.Resource] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// All yields every limit in the definitions with the field that it is in.
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

// EntityQuery says which entities to list. The zero value lists all of them from the first.
type EntityQuery struct {
	// Parent restricts the list to the children of an entity. Default: any.
	Parent string
	// Resource restricts the list to entities with limits of their own on it; [DefaultResource]
	// means limits for every other resource. Default: any.
	Resource string
	// After is the Next of the previous page. Default: begin with the first.
	After string
	// Size is the largest number of names in a page, up to 1,000. Default: 100.
	Size int
}

// EntityPage is one page of a list of entities.
type EntityPage struct {
	// Names are the names, in order.
	Names []string
	// Next is the After of the next page; empty if this is the last.
	Next string
}

// Config is the configuration of one subject: everything in a store that decides which limits apply
// to it.
type Config struct {
	// Levels are the stored levels that have limits, the strongest first.
	Levels []LevelLimits
	// Parent and Cascade are those of the entity. Known reports whether the entity is declared.
	Parent  string
	Cascade bool
	Known   bool
	// OnUnavailable is the system's policy; empty if none is set.
	OnUnavailable Policy
	// Version identifies when the read began: a larger one is newer. Only the store uses it: the
	// limiter keeps it with what it resolves and returns it in [driver.Judged.Version]. It is 0 if
	// the store does not use it.
	Version uint64
}
