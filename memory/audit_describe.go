package memory

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/metadata"
)

// describeLimits returns the events for the limits of a place.
func describeLimits(at weir.Subject, before, after *weir.Definitions) []auditChange {
	old, limits := before.LimitsAt(at), after.LimitsAt(at)
	if sameLimits(old, limits) {
		return nil
	}
	var changes []auditChange
	if at.Entity != "" {
		changes = describeEntity(at.Entity, before, after) // limits declare their entity
	}
	c := auditChange{action: actionLimitsSet, entity: auditOwner(at), resource: at.Resource}
	system := at == weir.Subject{}
	switch {
	case system && len(limits) > 0:
		return append(changes, systemChange(after))
	case system:
		names := make([]any, len(old))
		for i := range old {
			names[i] = old[i].Name
		}
		c.action = actionLimitsDeleted
		c.details = map[string]any{"limits": names, "on_unavailable": string(after.OnUnavailable)}
	case len(limits) > 0:
		c.details = map[string]any{"limits": limitsDetails(limits)}
	default:
		c.action = actionLimitsDeleted
	}
	return append(changes, c)
}

// systemChange returns the event for other limits or another policy of the system.
func systemChange(d *weir.Definitions) auditChange {
	return auditChange{action: actionLimitsSet, entity: auditSystem, details: map[string]any{
		"limits": limitsDetails(d.System), "on_unavailable": string(d.OnUnavailable),
	}}
}

// describePolicy returns the event for another policy.
func describePolicy(before, after *weir.Definitions) []auditChange {
	if before.OnUnavailable == after.OnUnavailable {
		return nil
	}
	return []auditChange{systemChange(after)}
}

// describeEntity returns the events for an entity that was declared or deleted, or whose parent,
// cascade, name or metadata were changed.
func describeEntity(name string, before, after *weir.Definitions) []auditChange {
	old, was := before.Entities[name]
	e, is := after.Entities[name]
	switch {
	case !was && !is:
		return nil
	case !is:
		return []auditChange{{action: actionEntityDeleted, entity: name}}
	case !was:
		c := auditChange{action: actionEntityCreated, entity: name, details: map[string]any{
			"name": cmp.Or(e.Name, name), "parent_id": orNil(e.Parent), "cascade": e.Cascade,
		}}
		if len(e.Metadata) > 0 {
			c.details["metadata"] = metadataDetails(e.Metadata)
		}
		return []auditChange{c}
	}
	var changes []auditChange
	if old.Parent != e.Parent || old.Cascade != e.Cascade {
		c := auditChange{action: actionEntityParentChanged, entity: name}
		c.details = map[string]any{"old_parent_id": orNil(old.Parent), "parent_id": orNil(e.Parent)}
		if old.Cascade != e.Cascade {
			c.details["cascade"] = e.Cascade
		}
		changes = append(changes, c)
	}
	if old.Name != e.Name || !metadata.Equal(old.Metadata, e.Metadata) {
		changes = append(changes, auditChange{
			action: actionEntityMetadataSet, entity: name, details: map[string]any{
				"name": cmp.Or(e.Name, name), "metadata": metadataDetails(e.Metadata),
			},
		})
	}
	return changes
}

// mostMetadata is the size in bytes above which an event has only the size of metadata: the audit
// is in memory, and keeps many events.
const mostMetadata = 4 << 10

// metadataDetails describes metadata.
func metadataDetails(m map[string]any) any {
	if n := len(metadata.JSON(m)); n > mostMetadata {
		return strconv.Itoa(n) + " bytes"
	}
	if m == nil {
		m = map[string]any{}
	}
	return m
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func limitsDetails(limits []weir.Limit) []any {
	list := make([]any, len(limits))
	for i := range limits {
		list[i] = limitDetails(&limits[i])
	}
	return list
}

// limitDetails describes a limit. Those of a bucket are as on a DynamoDB table.
func limitDetails(l *weir.Limit) map[string]any {
	d := map[string]any{"name": l.Name, "capacity": l.Capacity}
	if l.Kind != weir.Bucket {
		d["kind"] = string(l.Kind)
	}
	if l.Shadow {
		d["enforce"] = false
	}
	switch l.Kind {
	case weir.Window:
		d["window_seconds"] = seconds(l.Window)
	case weir.Concurrency:
		d["timeout_seconds"] = seconds(l.Timeout)
	case weir.Budget:
		d["every"], d["zone"] = l.Every, l.Zone
	default:
		d["refill_amount"], d["refill_period_seconds"] = l.RefillAmount, seconds(l.RefillPeriod)
	}
	return d
}

// seconds returns a number of seconds in decimal notation.
func seconds(d time.Duration) json.Number {
	text := strconv.FormatInt(int64(d/time.Second), 10)
	if ms := d % time.Second / time.Millisecond; ms != 0 {
		fraction := strconv.FormatInt(int64(time.Second/time.Millisecond+ms), 10)[1:]
		text += "." + fraction
	}
	return json.Number(text)
}

// describeConfig returns the event for a whole configuration in place of another.
func describeConfig(before, after *weir.Definitions) []auditChange {
	resources := countChanges(before.Resources, after.Resources, sameLimits)
	entities := countChanges(before.Entities, after.Entities, weir.EntityDefinition.Same)
	system := !sameLimits(before.System, after.System) || before.OnUnavailable != after.OnUnavailable
	none := changeCounts{}
	if !system && resources == none && entities == none {
		return nil
	}
	return []auditChange{{
		action: actionConfigurationLoaded, entity: auditSystem, details: map[string]any{
			"system_changed": system, "resources": resources.details(), "entities": entities.details(),
		},
	}}
}

// changeCounts is the number of names that were added, removed and given another meaning.
type changeCounts struct{ added, removed, changed int }

func (c changeCounts) details() map[string]any {
	return map[string]any{"added": c.added, "removed": c.removed, "changed": c.changed}
}

// countChanges compares two maps.
func countChanges[V any](before, after map[string]V, same func(a, b V) bool) (c changeCounts) {
	for name, b := range before {
		if a, ok := after[name]; !ok {
			c.removed++
		} else if !same(a, b) {
			c.changed++
		}
	}
	c.added = len(after) - (len(before) - c.removed)
	return c
}

// sameLimits compares normalized limits.
func sameLimits(a, b []weir.Limit) bool {
	return slices.EqualFunc(a, b, func(a, b weir.Limit) bool { return a.Same(b) })
}
