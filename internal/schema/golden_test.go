package schema_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// writes are the arguments of a run of the Python library, and the random numbers and times that it
// drew.
type writes struct {
	file      string
	namespace string
	doomed    string // the namespace that was deleted
	lambda    string
	at        string // the clock, to the second
	usageAt   string // the clock when usage was written
	// events are the IDs of the audit, in the order of events.
	events [8]string
	// pgen and pinc are the values for proj-1, key-1 and solo; zero in version 0.10.
	pgen [3]int64
	pinc [3]string
	// acquired are the times of acquire by key-1 (with proj-1), solo and anon, in Unix
	// milliseconds.
	acquired [3]int64
	// custom reports whether the limits of an entity's default count as its own, as from version
	// 0.17 on.
	custom bool
}

var written = []writes{
	{
		file: "items-0.10.json", namespace: "vTimWaUgvok", doomed: "GT6Qfbs776s",
		lambda: "0.10.2.dev42+gced59de08", at: "2026-11-21T06:55:29Z", usageAt: "2026-11-21T06:55:30Z",
		events: [8]string{
			"01M7YE6ZHZ92DADYXGPA5C8C81", "01M7YE6ZJ2YE281F5359GX9VVM", "01M7YE6ZJ8E0E5ZNQE3QE1SHVS",
			"01M7YE6ZJA49AMPSEHKFJHTR7Q", "01M7YE6ZJDVCKHW8AXE98HWS36", "01M7YE6ZJGYQ9AHY8DJ9PMHS01",
			"01M7YE6ZJRGT8HA55QF3GKZPGK", "01M7YE6ZJZPQC8V0DC5HBMR122",
		},
		acquired: [3]int64{1795244129898, 1795244129910, 1795244129915},
	},
	{
		file: "items-0.17.0.json", namespace: "37b3m1eXQTY", doomed: "uURwu9ql-qY",
		lambda: "0.17.0", at: "2026-11-21T06:55:31Z", usageAt: "2026-11-21T06:55:31Z",
		events: [8]string{
			"01M7YE70X7HEB2A96VDBQ59FP3", "01M7YE70XAVP48QF32KWJWCBBT", "01M7YE70XGANPDWVXE1VCW7FCS",
			"01M7YE70XJ3EN5XNKA2R7ENFK4", "01M7YE70XNSWPSR6Z4TT2GJVV6", "01M7YE70XQCFCKVH0RS4RNG9NQ",
			"01M7YE70Y0W0G8XXE1YHZ0ACBH", "01M7YE70Y93TREE97AWB8B04H4",
		},
		pgen:     [3]int64{1795244131249, 1795244131251, 1795244131254},
		pinc:     [3]string{"dc7e2c3683545829", "966a0a564795269d", "cc0f4b2340b9b813"},
		acquired: [3]int64{1795244131288, 1795244131311, 1795244131323},
		custom:   true,
	},
}

var (
	systemLimits   = []schema.Limit{limit("rpm", 100, 100, 60), limit("tpm", 10000, 10000, 60)}
	resourceLimits = []schema.Limit{limit("rpm", 75, 50, 60), limit("tph", 5000, 5000, 3600)}
	projectLimits  = []schema.Limit{limit("rpm", 1000, 500, 30)}
	soloLimits     = []schema.Limit{limit("rps", 10, 10, 1)}
)

func limit(name string, capacity, refill, seconds int64) schema.Limit {
	return schema.Limit{Name: name, Capacity: capacity, Refill: refill, Seconds: seconds}
}

// TestGoldenRoundTrip decodes each golden item and encodes it again. No attribute ends up in Extra:
// weir has a field for each.
func TestGoldenRoundTrip(t *testing.T) {
	t.Parallel()
	for _, w := range written {
		kinds := map[string]int{}
		_, items := loadGolden(t, w.file)
		for _, item := range items {
			kind, encoded, extra, err := again(item)
			if err != nil || kind == "" {
				t.Errorf("%s: item %s: kind %q, error %v", w.file, keyOf(item), kind, err)
				continue
			}
			kinds[kind]++
			sameItems(t, encoded, item)
			if extra != 0 {
				t.Errorf("%s: item %s: %d attributes are in Extra", w.file, keyOf(item), extra)
			}
		}
		if len(kinds) != 10 {
			t.Errorf("%s: got kinds %v, want 10 of them", w.file, kinds)
		}
		t.Log(w.file, len(items), "items:", kinds)
	}
}

// TestGoldenBuilt builds each item from the arguments of the library's run. The items built and the
// golden items must be the same.
func TestGoldenBuilt(t *testing.T) {
	t.Parallel()
	for _, w := range written {
		g, items := loadGolden(t, w.file)
		if g.NamespaceID != w.namespace || g.Version != w.lambda {
			t.Fatalf("%s is of namespace %s and version %s", w.file, g.NamespaceID, g.Version)
		}
		b := &builder{T: t, w: w, at: ok[time.Time](t)(schema.ParseTimestamp(w.at))}
		built := slices.Concat(
			b.registry(), b.configs(), b.entities(), b.buckets(), b.events(), b.usage(),
		)
		if len(built) != len(items) {
			t.Errorf("%s: built %d items, want %d", w.file, len(built), len(items))
		}
		for _, want := range items {
			i := slices.IndexFunc(built, func(item schema.Item) bool { return keyOf(item) == keyOf(want) })
			if i < 0 {
				t.Errorf("%s: item %s was not built", w.file, keyOf(want))
				continue
			}
			sameItems(t, built[i], want)
			built = slices.Delete(built, i, i+1)
		}
		for _, item := range built {
			t.Errorf("%s: item %s is not golden", w.file, keyOf(item))
		}
	}
}

// builder builds the items of a run.
type builder struct {
	*testing.T

	w  writes
	at time.Time
}

// registry builds the table's own items and the namespace's registries.
func (b *builder) registry() []schema.Item {
	now, ns := schema.Timestamp(b.at), b.w.namespace
	active := schema.Namespace{
		Name: schema.DefaultNamespace, ID: b.namespaceID(ns), Status: schema.StatusActive, CreatedAt: now,
	}
	reverse := active
	reverse.Reverse = true
	deleted := schema.Namespace{
		Reverse: true, Name: "doomed", ID: b.namespaceID(b.w.doomed), Status: schema.StatusDeleted,
		CreatedAt: now, DeletedAt: now,
	}
	version := schema.Version{
		Schema: schema.SchemaVersion, Lambda: b.w.lambda, ClientMin: schema.AnyClient,
		UpdatedAt: now, UpdatedBy: "client:" + b.w.lambda,
	}
	state := schema.Provisioner{
		Namespace: ns, System: true, Resources: []string{"gpt-4"},
		Entities:  map[string][]string{"u1": {"gpt-4"}},
		AppliedAt: schema.OffsetTimestamp(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Hash:      "sha256:abc", Unlisted: true,
	}
	resources := schema.Resources{Namespace: ns, Names: []string{"gpt-4"}}
	counts := schema.EntityConfigResources{
		Namespace: ns, Counts: map[string]int64{"gpt-4": 1, schema.DefaultResource: 1},
	}
	return []schema.Item{
		active.Item(), reverse.Item(), deleted.Item(), version.Item(), state.Item(), resources.Item(),
		counts.Item(),
	}
}

func (b *builder) namespaceID(id string) string {
	random := ok[[]byte](b)(base64.RawURLEncoding.DecodeString(id))
	return ok[string](b)(schema.NewNamespaceID(bytes.NewReader(random)))
}

func (b *builder) configs() []schema.Item {
	ns := b.w.namespace
	list := []schema.Config{
		{Namespace: ns, Limits: systemLimits, OnUnavailable: "allow"},
		{Namespace: ns, Resource: "gpt-4", Limits: resourceLimits},
		{Namespace: ns, Entity: "proj-1", Resource: "gpt-4", Limits: projectLimits},
		{Namespace: ns, Entity: "solo", Resource: schema.DefaultResource, Limits: soloLimits},
	}
	var items []schema.Item
	for i := range list {
		items = append(items, list[i].Item())
	}
	return items
}

func (b *builder) entity(i int) *schema.Entity {
	e := &schema.Entity{
		Namespace: b.w.namespace, Generation: b.w.pgen[i], CreatedAt: schema.Timestamp(b.at),
	}
	if pinc := b.w.pinc[i]; pinc != "" {
		random := ok[[]byte](b)(hex.DecodeString(pinc))
		e.Incarnation = ok[string](b)(schema.NewIncarnation(bytes.NewReader(random)))
	}
	switch i {
	case 0:
		e.ID, e.Name = "proj-1", "Project 1"
	case 1:
		e.ID, e.Name, e.Parent, e.Cascade = "key-1", "key-1", "proj-1", true
		e.Metadata = map[string]any{"team": "a"}
	case 2:
		e.ID, e.Name = "solo", "solo"
	}
	return e
}

func (b *builder) entities() []schema.Item {
	var items []schema.Item
	for i := range 3 {
		items = append(items, ok[schema.Item](b)(b.entity(i).Item()))
	}
	return items
}

// drawn is a bucket that was created by a charge.
type drawn struct {
	resource string
	owner    *schema.Entity // nil if it was not declared
	entity   string
	at       int64
	limits   []schema.Limit
	level    weir.Level
	costs    map[string]int64 // in units
}

func (b *builder) buckets() []schema.Item {
	project, key, solo := b.entity(0), b.entity(1), b.entity(2)
	soloLevel := weir.LevelEntityDefault
	if !b.w.custom { // in version 0.10 these expire too
		soloLevel = weir.LevelSystem
	}
	at := b.w.acquired
	return []schema.Item{
		b.bucket(drawn{"gpt-4", key, "", at[0], resourceLimits, weir.LevelResource, costs("rpm", 5)}),
		b.bucket(drawn{"gpt-4", project, "", at[0], projectLimits, weir.LevelEntity, costs("rpm", 5)}),
		b.bucket(drawn{"other/model", solo, "", at[1], soloLimits, soloLevel, costs("rps", 1)}),
		b.bucket(drawn{
			"gpt-4", nil, "anon", at[2], resourceLimits, weir.LevelResource,
			map[string]int64{"rpm": 1, "tph": 7},
		}),
	}
}

func costs(name string, n int64) map[string]int64 { return map[string]int64{name: n} }

func (b *builder) bucket(d drawn) schema.Item {
	if d.owner != nil {
		d.entity = d.owner.ID
	}
	id := schema.BucketID{Namespace: b.w.namespace, Entity: d.entity, Resource: d.resource}
	bucket := ok[*schema.Bucket](b)(schema.NewBucket(id, d.at, d.limits))
	if d.owner != nil {
		bucket.Parent, bucket.Cascade = d.owner.Parent, d.owner.Cascade
		bucket.Generation, bucket.Incarnation = d.owner.Generation, d.owner.Incarnation
	}
	seconds, ends := schema.BucketSeconds(bucket.Limits, schema.TTLMultiplier)
	if ends && schema.Expires(d.level) {
		bucket.TTL = schema.TTL(d.at, seconds)
	}
	for name, n := range d.costs {
		bucket.Limit(name).Balance -= n * 1000
		bucket.Limit(name).Consumed += n * 1000
	}
	return bucket.Item()
}

func (b *builder) events() []schema.Item {
	const system, project = schema.AuditSystem, "proj-1"
	resource := schema.AuditResource("gpt-4")
	created := func(i int) map[string]any { return schema.CreatedDetails(b.entity(i)) }
	set := schema.ActionLimitsSet
	return []schema.Item{
		b.event(0, system, set, "", schema.SystemLimitsDetails(systemLimits, "")),
		b.event(1, system, set, "", schema.SystemLimitsDetails(systemLimits, "allow")),
		b.event(2, resource, set, "gpt-4", schema.LimitsDetails(resourceLimits)),
		b.event(3, project, schema.ActionEntityCreated, "", created(0)),
		b.event(4, "key-1", schema.ActionEntityCreated, "", created(1)),
		b.event(5, "solo", schema.ActionEntityCreated, "", created(2)),
		b.event(6, project, set, "gpt-4", schema.LimitsDetails(projectLimits)),
		b.event(7, "solo", set, schema.DefaultResource, schema.LimitsDetails(soloLimits)),
	}
}

func (b *builder) event(
	i int, entity, action, resource string, details map[string]any,
) schema.Item {
	id := ok[weir.LeaseID](b)(weir.ParseLeaseID(b.w.events[i]))
	ms := id.Time().UnixMilli()
	e := schema.AuditEvent{
		Namespace: b.w.namespace, Entity: entity, Action: action, Resource: resource, Details: details,
		ID:        ok[string](b)(schema.NewULID(ms, bytes.NewReader(id[6:]))),
		Timestamp: schema.Timestamp(b.at),
		Principal: "arn:aws:sts::123456789012:user/moto",
		TTL:       schema.TTL(ms, schema.RetentionDays*86_400),
	}
	return ok[schema.Item](b)(e.Item())
}

func (b *builder) usage() []schema.Item {
	now := ok[time.Time](b)(schema.ParseTimestamp(b.w.usageAt))
	id := schema.BucketID{Namespace: b.w.namespace, Entity: "key-1", Resource: "gpt-4"}
	u := schema.NewUsage(id, weir.Hourly, time.Date(2025, 1, 1, 12, 34, 56, 0, time.UTC))
	u.Events, u.Counters["rpm"] = 1, 2
	u.TTL = schema.TTL(now.UnixMilli(), 90*86_400)
	return []schema.Item{u.Item()}
}
