package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// decoder decodes the tree of a file into a manifest and records every mistake.
type decoder struct {
	found    *mistakes
	out      *Manifest
	entities []entityPosition // in the order of the file
	order    map[string]int   // index of each entity in entities
}

// decode returns what the tree declares. The result is usable only if no mistake was found.
func decode(root *node, found *mistakes) *Manifest {
	d := &decoder{found: found, order: map[string]int{}, out: &Manifest{
		Namespace: DefaultNamespace,
		Definitions: &weir.Definitions{
			Resources: map[string][]weir.Limit{},
			Entities:  map[string]weir.EntityDefinition{},
		},
		at: map[string]position{},
	}}
	if root.kind == nullNode {
		found.add(root.at, "", "", "the file is empty: a limits file begins with \"version: 1\"")
		return d.out
	}
	d.file(root)
	d.checkParents()
	if !found.none() {
		return d.out
	}
	normal, err := d.out.Definitions.Normalize()
	for _, e := range faults(err) { // none: Normalize refuses nothing that is not refused above
		found.add(root.at, e.Field, e.Value, e.Reason)
	}
	d.out.Definitions = normal
	return d.out
}

// file decodes the outermost mapping.
func (d *decoder) file(root *node) {
	known := []string{"version", "namespace", "system", "resources", "entities"}
	ok := d.fields(root, "", known, func(field string, n *node) {
		switch field {
		case "version":
			d.version(n)
		case "namespace":
			d.out.Namespace = d.identifier(n, field, identifier.CheckNamespace)
		case "system":
			d.system(n)
		case "resources":
			d.names(n, field, resourceFault, func(name, path string, n *node) {
				if limits := d.level(n, path); limits != nil {
					d.out.Definitions.Resources[name] = limits
				}
			})
		case "entities":
			d.names(n, field, identifier.CheckEntity, d.entity)
		}
	})
	if _, given := d.out.at["version"]; ok && !given {
		d.found.add(root.at, "version", "", "is missing: a limits file begins with \"version: 1\"")
	}
}

func (d *decoder) version(n *node) {
	v, reason := n.integer()
	switch {
	case reason != "":
		d.found.add(n.at, "version", n.source(), "must be a whole number, "+reason)
	case v != formatVersion:
		d.found.add(n.at, "version", n.source(), fmt.Sprintf("must be %d", formatVersion))
	}
	d.out.Version = formatVersion
}

func (d *decoder) system(n *node) {
	defs := d.out.Definitions
	d.fields(n, "system", []string{"on_unavailable", "retention", "limits"}, func(field string, n *node) {
		path := "system." + field
		switch field {
		case "retention":
			defs.Retention = d.retention(n, path)
		case "on_unavailable":
			defs.OnUnavailable = weir.Policy(d.identifier(n, path, policyFault))
		case "limits":
			defs.System = d.limits(n, path)
		}
	})
}

// retention decodes the settings of the retention; those that are not given are nil.
func (d *decoder) retention(n *node, path string) (r weir.Retention) {
	d.fields(n, path, []string{"usage_days", "audit_days", "ttl_multiplier"}, func(field string, n *node) {
		v, reason := n.integer()
		if reason != "" {
			d.found.add(n.at, path+"."+field, n.source(), "must be a whole number, "+reason)
			return
		}
		var one weir.Retention
		switch field {
		case "usage_days":
			r.UsageDays, one.UsageDays = &v, &v
		case "audit_days":
			r.AuditDays, one.AuditDays = &v, &v
		case "ttl_multiplier":
			r.TTLMultiplier, one.TTLMultiplier = &v, &v
		}
		if reason := reasonOf(&weir.Definitions{Retention: one}); reason != "" {
			d.found.add(n.at, path+"."+field, n.source(), reason)
		}
	})
	return r
}

// level decodes a resource, or a resource of an entity: a mapping that has only limits. A level
// without limits is refused, because it seems to say that there are none, but weaker levels apply.
func (d *decoder) level(n *node, path string) []weir.Limit {
	var limits []weir.Limit
	given := false
	ok := d.fields(n, path, []string{"limits"}, func(_ string, n *node) {
		given = true
		limits = d.limits(n, path+".limits")
	})
	if ok && !given {
		d.found.add(n.at, path, n.source(), "has no limits: name at least one, or leave it out")
	}
	return limits
}

// limits decodes the limits of a level.
func (d *decoder) limits(n *node, path string) []weir.Limit {
	var limits []weir.Limit
	if n.kind == nullNode || n.kind == mappingNode && len(n.entries) == 0 {
		d.found.add(n.at, path, n.source(), "is empty: name at least one limit, or leave it out")
	}
	d.names(n, path, identifier.CheckLimit, func(name, path string, n *node) {
		limits = append(limits, d.limit(name, path, n))
	})
	return limits
}

// entity decodes one entity.
func (d *decoder) entity(name, path string, n *node) {
	e := weir.EntityDefinition{Limits: map[string][]weir.Limit{}}
	self := entityPosition{name: name, path: path, at: n.at}
	known := []string{"parent", "cascade", "name", "metadata", "metadata_json", "resources"}
	d.fields(n, path, known, func(field string, n *node) {
		path := path + "." + field
		switch field {
		case "name":
			e.Name = d.identifier(n, path, displayNameFault)
		case "metadata":
			d.metadata(n, path, &e)
		case "metadata_json":
			d.metadataJSON(n, path, &e)
		case "parent":
			e.Parent, self.parentAt = d.identifier(n, path, identifier.CheckEntity), n.at
		case "cascade":
			e.Cascade, self.cascadeAt = d.boolean(n, path), n.at
		case "resources":
			d.names(n, path, entityResourceFault, func(name, path string, n *node) {
				if limits := d.level(n, path); limits != nil {
					e.Limits[name] = limits
				}
			})
		}
	})
	d.order[name] = len(d.entities)
	d.entities = append(d.entities, self)
	d.out.Definitions.Entities[name] = e
}

// fields calls set for each field of a mapping, and records the fields that are unknown or given
// twice. It reports whether n is a mapping; a null counts as an empty one.
func (d *decoder) fields(n *node, path string, known []string, set func(string, *node)) bool {
	if !d.mapping(n, path) {
		return false
	}
	seen := make(map[string]position, len(n.entries))
	for i := range n.entries {
		e := &n.entries[i]
		field := join(path, e.name)
		switch {
		case e.name == "burst" && slices.Contains(known, "capacity"):
			d.found.add(e.at, field, e.value.source(), "is no longer used: capacity is the ceiling")
		case !slices.Contains(known, e.name):
			d.found.add(e.at, join(path, quote(e.name)), e.value.source(),
				"is unknown: the fields here are "+strings.Join(known, ", "))
		case seen[e.name] != position{}:
			d.twice(e, field, seen[e.name])
		default:
			seen[e.name] = e.at
			d.notePosition(field, e.at)
			set(e.name, &e.value)
		}
	}
	return true
}

// names calls each for every entry of a mapping whose names the file chooses, and records the names
// that are malformed or given twice.
func (d *decoder) names(
	n *node, path string, fault func(string) string, each func(name, path string, n *node),
) {
	if !d.mapping(n, path) {
		return
	}
	seen := make(map[string]position, len(n.entries))
	for i := range n.entries {
		e := &n.entries[i]
		field := join(path, e.name)
		if reason := fault(e.name); reason != "" {
			field = join(path, quote(e.name))
			d.found.add(e.at, field, e.name, reason)
		}
		if first := seen[e.name]; first != (position{}) {
			d.twice(e, field, first)
			continue
		}
		seen[e.name] = e.at
		d.notePosition(field, e.at)
		each(e.name, field, &e.value)
	}
}

// notePosition records where a part of the file is. Names may contain dots, so two parts may have
// the same path; the first one keeps it.
func (d *decoder) notePosition(path string, at position) {
	if _, taken := d.out.at[path]; !taken {
		d.out.at[path] = at
	}
}

func (d *decoder) twice(e *entry, field string, first position) {
	d.found.add(e.at, field, e.value.source(),
		fmt.Sprintf("is given twice, first on line %d", first.line))
}

// mapping reports whether n is a mapping or null, and records a mistake if not.
func (d *decoder) mapping(n *node, path string) bool {
	switch {
	case n.kind == mappingNode || n.kind == nullNode:
		return true
	case path != "":
		d.found.add(n.at, path, n.source(), "must be a mapping, not "+n.kindName())
	case n.kind == scalarNode:
		d.found.add(n.at, "", "",
			fmt.Sprintf("the file must be a mapping, not the text %q", clip.Text(n.text)))
	default:
		d.found.add(n.at, "", "", "the file must be a mapping, not "+n.kindName())
	}
	return false
}

// identifier decodes a text and checks it; the result is empty if it is wrong. A number or a bool
// is taken as it is written, because an entity may be named 42.
func (d *decoder) identifier(n *node, path string, fault func(string) string) string {
	if n.kind != scalarNode {
		d.found.add(n.at, path, "", "must be text, not "+n.kindName())
		return ""
	}
	if reason := fault(n.text); reason != "" {
		d.found.add(n.at, path, n.text, reason)
		return ""
	}
	return n.text
}

func (d *decoder) boolean(n *node, path string) bool {
	v, ok := n.boolean()
	if !ok {
		d.found.add(n.at, path, n.source(), "must be true or false, not "+n.kindName())
	}
	return v
}
