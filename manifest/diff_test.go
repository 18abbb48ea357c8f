package manifest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/manifest"
)

const wantDiff = `update system.on_unavailable: block -> allow
create system.limits.day: day:5:window/86400s
delete system.limits.gone: gone:1
update system.limits.rpm: rpm:600 -> rpm:600:shadow
create resources.new.limits.rpm: rpm:5/s
delete resources.old.limits.rpm: rpm:5
delete resources.old.limits.tpm: tpm:6
create entities.acme.resources._default_.limits.rpm: rpm:3
create entities.acme.resources.llm.limits.rpm: rpm:2
update entities.bot.parent: acme -> other
update entities.bot.cascade: true -> false
update entities.bot.resources.llm.limits.rpm: rpm:1 -> rpm:1:budget/day
create entities.joiner
create entities.joiner.parent: acme
create entities.joiner.cascade: true
create entities.joiner.resources.a/b.limits.rpm: rpm:1
delete entities.leaver.parent: acme
delete entities.leaver.cascade: true
delete entities.leaver.resources._default_.limits.rpm: rpm:1
delete entities.leaver
create entities.other
`

func TestDiff(t *testing.T) {
	t.Parallel()
	before := parse(t, `
version: 1
system: {limits: {rpm: {capacity: 600}, gone: {capacity: 1}}}
resources:
  same: {limits: {rpm: {capacity: 5}}}
  old: {limits: {rpm: {capacity: 5}, tpm: {capacity: 6}}}
entities:
  acme: {}
  bot: {parent: acme, cascade: true, resources: {llm: {limits: {rpm: {capacity: 1}}}}}
  leaver: {parent: acme, cascade: true, resources: {_default_: {limits: {rpm: {capacity: 1}}}}}
`).Definitions
	after := parse(t, `
version: 1
system:
  on_unavailable: allow
  limits: {rpm: {capacity: 600, enforce: false}, day: {kind: window, capacity: 5, window: 86400}}
resources:
  same: {limits: {rpm: {capacity: 5, refill_amount: 5, refill_period: 60, kind: bucket}}}
  new: {limits: {rpm: {capacity: 5, refill_period: 1}}}
entities:
  acme: {resources: {llm: {limits: {rpm: {capacity: 2}}}, _default_: {limits: {rpm: {capacity: 3}}}}}
  other: {}
  bot: {parent: other, resources: {llm: {limits: {rpm: {capacity: 1, kind: budget, every: day}}}}}
  joiner: {parent: acme, cascade: true, resources: {a/b: {limits: {rpm: {capacity: 1}}}}}
`).Definitions
	got := manifest.Diff(before, after)
	if lines(got) != wantDiff {
		t.Errorf("got\n%s\nwant\n%s", lines(got), wantDiff)
	}
	levels := map[string]weir.Level{}
	for i := range got {
		levels[got[i].Path()] = got[i].Level
	}
	for path, want := range map[string]weir.Level{
		"system.on_unavailable":                        weir.LevelSystem,
		"resources.new.limits.rpm":                     weir.LevelResource,
		"entities.acme.resources._default_.limits.rpm": weir.LevelEntityDefault,
		"entities.acme.resources.llm.limits.rpm":       weir.LevelEntity,
		"entities.joiner":                              weir.LevelEntity,
	} {
		if levels[path] != want {
			t.Errorf("%s: got level %q, want %q", path, levels[path], want)
		}
	}
	checkDiff(t, before, after)
	checkDiff(t, after, before)
	checkDiff(t, nil, after)
	checkDiff(t, after, nil)
}

func TestDiffOfEqualManifests(t *testing.T) {
	t.Parallel()
	empty := &weir.Definitions{
		Resources: map[string][]weir.Limit{"r": {}}, Entities: map[string]weir.EntityDefinition{},
	}
	for _, got := range [][]manifest.Change{
		manifest.Diff(nil, nil), manifest.Diff(nil, empty), manifest.Diff(empty, nil),
		manifest.Diff(normal(t, empty), normal(t, &weir.Definitions{})),
	} {
		if len(got) != 0 {
			t.Errorf("got %s, want no change", lines(got))
		}
	}
}

// checkDiff applies the changes to one configuration, in order, and compares the result with the
// other.
func checkDiff(t *testing.T, before, after *weir.Definitions) {
	t.Helper()
	changes := manifest.Diff(before, after)
	got := &weir.Definitions{}
	if before != nil {
		got = normal(t, before)
	}
	for i := range changes {
		apply(t, got, &changes[i])
	}
	if after == nil {
		after = &weir.Definitions{}
	}
	if left := manifest.Diff(normal(t, got), normal(t, after)); len(left) > 0 {
		t.Fatalf("the changes\n%s leave\n%s", lines(changes), lines(left))
	}
}

func apply(t *testing.T, d *weir.Definitions, c *manifest.Change) {
	t.Helper()
	if d.Resources == nil {
		d.Resources, d.Entities = map[string][]weir.Limit{}, map[string]weir.EntityDefinition{}
	}
	e, exists := d.Entities[c.Entity]
	if c.Entity != "" && exists == (c.Action == manifest.Create && c.Limit+c.Attribute == "") {
		t.Errorf("%s: the entity exists: %v", c.String(), exists)
	}
	switch {
	case strings.HasPrefix(c.Attribute, "retention."):
		applyRetention(t, &d.Retention, c)
	case c.Level == weir.LevelSystem && c.Limit == "":
		d.OnUnavailable = weir.Policy(c.Is)
	case c.Level == weir.LevelSystem:
		d.System = applyLimit(t, d.System, c)
	case c.Level == weir.LevelResource:
		d.Resources[c.Resource] = applyLimit(t, d.Resources[c.Resource], c)
	case c.Limit == "" && c.Attribute == "" && c.Action == manifest.Delete:
		delete(d.Entities, c.Entity)
	default:
		e.Limits = maps.Clone(e.Limits)
		if e.Limits == nil {
			e.Limits = map[string][]weir.Limit{}
		}
		switch {
		case c.Attribute == "parent":
			e.Parent = c.Is
		case c.Attribute == "cascade":
			e.Cascade = c.Is == "true"
		case c.Attribute == "name":
			e.Name = ""
			if c.Is != "" {
				e.Name = fromJSON(t, c.Is).(string)
			}
		case strings.HasPrefix(c.Attribute, "metadata."):
			e.Metadata = maps.Clone(e.Metadata)
			applyMetadata(t, &e, strings.TrimPrefix(c.Attribute, "metadata."), c.Is)
		case c.Limit != "":
			e.Limits[c.Resource] = applyLimit(t, e.Limits[c.Resource], c)
		}
		d.Entities[c.Entity] = e
	}
}

func applyMetadata(t *testing.T, e *weir.EntityDefinition, name, is string) {
	t.Helper()
	if is == "" {
		delete(e.Metadata, name)
		return
	}
	if e.Metadata == nil {
		e.Metadata = map[string]any{}
	}
	e.Metadata[name] = fromJSON(t, is)
}

func fromJSON(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return v
}

func applyRetention(t *testing.T, r *weir.Retention, c *manifest.Change) {
	t.Helper()
	n, err := strconv.ParseInt(c.Is, 10, 64)
	if err != nil {
		t.Errorf("%s: %v", c.String(), err)
	}
	switch c.Attribute {
	case "retention.usage_days":
		r.UsageDays = &n
	case "retention.audit_days":
		r.AuditDays = &n
	case "retention.ttl_multiplier":
		r.TTLMultiplier = &n
	default:
		t.Errorf("%s: is no setting", c.String())
	}
}

// TestDiffRetention checks that only the settings that the second configuration has are changes.
func TestDiffRetention(t *testing.T) {
	t.Parallel()
	before := &weir.Definitions{Retention: weir.Retention{UsageDays: new(int64(30)), AuditDays: new(int64(90))}}
	for _, c := range []struct {
		after weir.Retention
		want  string
	}{
		{weir.Retention{}, ""},
		{weir.Retention{UsageDays: new(int64(30))}, ""},
		{weir.Retention{UsageDays: new(int64(7)), TTLMultiplier: new(int64(0))},
			"update system.retention.usage_days: 30 -> 7\ncreate system.retention.ttl_multiplier: 0"},
	} {
		got := strings.TrimSpace(lines(manifest.Diff(normal(t, before), normal(t, &weir.Definitions{Retention: c.after}))))
		if got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

func applyLimit(t *testing.T, limits []weir.Limit, c *manifest.Change) []weir.Limit {
	t.Helper()
	i := slices.IndexFunc(limits, func(l weir.Limit) bool { return l.Name == c.Limit })
	if (i >= 0) != (c.Before != nil) || i >= 0 && !limits[i].Same(*c.Before) {
		t.Errorf("%s: not what stood there", c.String())
		return limits
	}
	limits = slices.Clone(limits)
	switch c.Action {
	case manifest.Create:
		return append(limits, *c.After)
	case manifest.Update:
		limits[i] = *c.After
		return limits
	default:
		return slices.Delete(limits, i, i+1)
	}
}
