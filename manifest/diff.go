package manifest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
)

// Action is the sort of a change.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Change is one difference between two configurations: of a limit, an entity or an attribute.
type Change struct {
	Action Action
	// Level is where the change is. For an entity itself it is [weir.LevelEntity].
	Level weir.Level
	// Entity and Resource are the place; empty if the level has none.
	Entity   string
	Resource string
	// Limit is the name of the limit; empty if something else changes.
	Limit string
	// Before and After are the limit; nil if there was or will be none.
	Before *weir.Limit
	After  *weir.Limit
	// Attribute is "on_unavailable", "parent", "cascade", "name", "metadata." and a name in the
	// metadata, or "retention." and the name of a setting of [weir.Retention] if one of these
	// changes. If both Attribute and Limit are empty, the entity
	// itself is created or deleted.
	Attribute string
	// Was and Is are the values of the attribute, those of the name and the metadata as JSON; empty if
	// there was or will be none.
	Was string
	Is  string
}

// Diff returns the changes that lead from one normalized configuration to another. Nil means an
// empty one. The order is that of a file written by [Format]: the system, then resources, then
// entities, each sorted by name, and within them attributes before limits, sorted by name. An
// entity is created before its parts and deleted after them. A setting of the retention that after
// does not have is no change: the store keeps what it has.
func Diff(before, after *weir.Definitions) []Change {
	empty := &weir.Definitions{OnUnavailable: weir.Block}
	if before == nil {
		before = empty
	}
	if after == nil {
		after = empty
	}
	var d differ
	d.attribute(Change{
		Level: weir.LevelSystem, Attribute: "on_unavailable",
		Was: policy(before), Is: policy(after),
	})
	d.retention(before.Retention, after.Retention)
	d.limits(Change{Level: weir.LevelSystem}, before.System, after.System)
	for _, name := range names(before.Resources, after.Resources) {
		at := Change{Level: weir.LevelResource, Resource: name}
		d.limits(at, before.Resources[name], after.Resources[name])
	}
	for _, name := range names(before.Entities, after.Entities) {
		d.entity(name, before.Entities, after.Entities)
	}
	return d.changes
}

// retention adds the changes of the settings that after has.
func (d *differ) retention(before, after weir.Retention) {
	had := maps.Collect(before.All)
	for name, is := range after.All {
		if is == nil {
			continue
		}
		c := Change{
			Level: weir.LevelSystem, Attribute: "retention." + name, Is: strconv.FormatInt(*is, 10),
		}
		if was := had[name]; was != nil {
			c.Was = strconv.FormatInt(*was, 10)
		}
		d.attribute(c)
	}
}

func policy(d *weir.Definitions) string {
	if d.OnUnavailable == "" {
		return string(weir.Block)
	}
	return string(d.OnUnavailable)
}

// names returns the keys of both maps, sorted.
func names[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

type differ struct{ changes []Change }

func (d *differ) entity(name string, before, after map[string]weir.EntityDefinition) {
	was, existed := before[name]
	is, exists := after[name]
	at := Change{Level: weir.LevelEntity, Entity: name}
	if !existed {
		at.Action = Create
		d.changes = append(d.changes, at)
	}
	at.Attribute, at.Was, at.Is = "parent", was.Parent, is.Parent
	d.attribute(at)
	at.Attribute, at.Was, at.Is = "cascade", flag(was.Cascade, existed), flag(is.Cascade, exists)
	if was.Cascade != is.Cascade {
		d.attribute(at)
	}
	at.Attribute, at.Was, at.Is = "name", nameJSON(was.Name), nameJSON(is.Name)
	d.attribute(at)
	d.metadata(at, was.Metadata, is.Metadata)
	for _, resource := range names(was.Limits, is.Limits) {
		at := Change{Level: weir.LevelEntity, Entity: name, Resource: resource}
		if resource == weir.DefaultResource {
			at.Level = weir.LevelEntityDefault
		}
		d.limits(at, was.Limits[resource], is.Limits[resource])
	}
	if !exists {
		d.changes = append(d.changes, Change{Action: Delete, Level: weir.LevelEntity, Entity: name})
	}
}

// flag returns the value of an attribute; empty if its entity does not exist.
func flag(v, exists bool) string {
	if !exists {
		return ""
	}
	return strconv.FormatBool(v)
}

// attribute adds a change of an attribute, unless its values are the same.
func (d *differ) attribute(c Change) {
	if c.Was == c.Is {
		return
	}
	c.Action = Update
	if c.Was == "" {
		c.Action = Create
	} else if c.Is == "" {
		c.Action = Delete
	}
	d.changes = append(d.changes, c)
}

// limits adds the changes of one level. Both lists are sorted by name.
func (d *differ) limits(at Change, before, after []weir.Limit) {
	for len(before) > 0 || len(after) > 0 {
		c, order := at, 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = strings.Compare(before[0].Name, after[0].Name)
		}
		if order <= 0 {
			c.Action, c.Limit, c.Before = Delete, before[0].Name, &before[0]
			before = before[1:]
		}
		if order >= 0 {
			c.Action, c.Limit, c.After = Create, after[0].Name, &after[0]
			after = after[1:]
		}
		if order == 0 {
			if c.Before.Same(*c.After) {
				continue
			}
			c.Action = Update
		}
		d.changes = append(d.changes, c)
	}
}

// Path returns where the change is, as a limits file names it: "resources.gpt-4o.limits.rpm".
func (c *Change) Path() string {
	var parts []string
	if c.Level == weir.LevelSystem {
		parts = append(parts, "system")
	}
	if c.Entity != "" {
		parts = append(parts, "entities", c.Entity)
	}
	if c.Resource != "" {
		parts = append(parts, "resources", c.Resource)
	}
	if c.Limit != "" {
		parts = append(parts, "limits", c.Limit)
	}
	if name, ok := strings.CutPrefix(c.Attribute, "metadata."); ok {
		parts = append(parts, "metadata", quote(name))
	} else if c.Attribute != "" {
		parts = append(parts, c.Attribute)
	}
	return strings.Join(parts, ".")
}

// String returns one line for people, such as "update system.limits.rpm: rpm:600 -> rpm:900".
func (c *Change) String() string {
	was, is := c.Was, c.Is
	if c.Before != nil {
		was = FormatLimit(*c.Before)
	}
	if c.After != nil {
		is = FormatLimit(*c.After)
	}
	line := string(c.Action) + " " + c.Path()
	switch {
	case was != "" && is != "":
		return line + ": " + was + " -> " + is
	case was+is != "":
		return line + ": " + was + is
	}
	return line
}
