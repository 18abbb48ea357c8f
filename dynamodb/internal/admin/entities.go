package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/metadata"
	"github.com/weir-limiter/weir/internal/schema"
)

const (
	// maxAncestors bounds the walk up a chain of parents, as in the Python library.
	maxAncestors = 32
	// MovesSince is the first release of the Python library that respects a changed parent.
	MovesSince = "0.17.0"
)

// WriteEntity declares an entity or changes its parent and cascade, and stamps its bucket items.
// For a parent that does not exist and for a cycle, the error has code [weir.Invalid]. Writing the
// same definition again stamps the items again.
func (a *Admin) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	c := &change.Entity{Parent: parent, Cascade: cascade}
	_, err := a.ChangeEntity(ctx, now, name, c, change.Options{})
	return err
}

// ChangeEntity is WriteEntity for all of an entity but its limits, on condition that it is as o
// requires. It returns the new version.
func (a *Admin) ChangeEntity(
	ctx context.Context, now time.Time, name string, c *change.Entity, o change.Options,
) (version string, err error) {
	if err := a.running.Enter(); err != nil {
		return "", err
	}
	defer a.running.End()
	var written *schema.Entity
	err = a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		written, version, err = a.planEntity(ctx, t, name, c, o)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := a.restamp(ctx, written); err != nil {
		return "", err
	}
	return version, a.buckets.ApplyConfigChange(ctx, bucketitem.ConfigChange{
		Kind: bucketitem.EntityChanged, At: weir.Subject{Entity: name}, Now: now,
	})
}

// planEntity plans the writes that change an entity if it is as o requires. It returns the entity
// and the version that it then has.
func (a *Admin) planEntity(
	ctx context.Context, t *Change, name string, c *change.Entity, o change.Options,
) (*schema.Entity, string, error) {
	items, err := a.Client.BatchGet(ctx, []schema.Key{
		schema.SystemConfigKey(a.config.Namespace), schema.VersionKey(),
	}, true)
	if err != nil {
		return nil, "", err
	}
	if err := t.setRetention(items[0]); err != nil {
		return nil, "", err
	}
	d, err := a.config.ReadDefinition(ctx, name)
	if err != nil {
		return nil, "", err
	}
	e, edits, err := a.edited(d, name, c, t.now)
	if err != nil {
		return nil, "", err
	}
	if err := o.Check(d.Version(), "the entity "+name); err != nil {
		if d.Entity == nil || o.IfAbsent || edits.any() {
			return nil, "", err
		}
	}
	if c.Parent != "" {
		if err := a.planParent(ctx, t, name, c.Parent); err != nil {
			return nil, "", err
		}
	}
	if d.Entity != nil && !edits.any() {
		t.Items = nil // nothing changes: drop the conditions on the ancestors
		return e, d.Version(), nil
	}
	if !edits.moves && d.Entity != nil {
		t.Items = nil
	}
	item, err := e.Item()
	if err != nil {
		return nil, "", &weir.Error{Code: weir.Invalid, Field: "metadata", Reason: "cannot be stored", Err: err}
	}
	version := schema.EntityVersion(item, d.Items)
	if d.Entity == nil {
		return e, version, t.declare(e)
	}
	if edits.moves {
		if err := t.requireMoves(items[1]); err != nil {
			return nil, "", err
		}
	}
	return e, version, t.edit(d, e, item, edits)
}

// entityEdits says what a change of an entity changes.
type entityEdits struct {
	moves bool // the parent or the cascade
	names bool // the name or the metadata
}

func (e entityEdits) any() bool { return e.moves || e.names }

// edited returns an entity with a change made, or a new one if it has no META.
func (a *Admin) edited(
	d *config.Entity, name string, c *change.Entity, now time.Time,
) (*schema.Entity, entityEdits, error) {
	var edits entityEdits
	var e *schema.Entity
	if d.Entity == nil {
		var err error
		if e, err = NewEntity(a.config.Namespace, name, now); err != nil {
			return nil, edits, err
		}
	} else {
		e = new(*d.Entity)
		edits.moves = e.Parent != c.Parent || e.Cascade != c.Cascade
	}
	if e.Parent, e.Cascade = c.Parent, c.Cascade; edits.moves {
		e.Generation++
	}
	if c.Name != nil {
		was := cmp.Or(e.Name, name)
		e.Name = cmp.Or(*c.Name, name) // as the Python library does
		edits.names = e.Name != was
	}
	if c.Metadata != nil {
		was, path, reason := metadata.Plain(e.Metadata)
		if reason != "" {
			return nil, edits, client.Fault(weir.Unsupported, "metadata"+path, "",
				"has been written by another program, and would be lost: "+reason)
		}
		if !metadata.Equal(was, c.Metadata) {
			e.Metadata, edits.names = c.Metadata, true
		}
	}
	if d.Entity != nil && edits.any() {
		e.Version++
	}
	return e, edits, nil
}

// edit writes an entity, on condition that it is as it was read.
func (t *Change) edit(
	d *config.Entity, e *schema.Entity, item schema.Item, edits entityEdits,
) error {
	x := &client.Expression{}
	x.RequireExists(schema.AttrPK)
	for _, a := range append(schema.EntityVersionAttributes(), schema.AttrVersion) {
		x.RequireUnchanged(d.Meta, a)
	}
	x.SetNumber(schema.AttrVersion, e.Version)
	if edits.names {
		x.SetText(schema.AttrName, e.Name)
		x.Set = append(x.Set, x.Name(schema.AttrMetadata)+" = "+x.Value(item[schema.AttrMetadata]))
	}
	if edits.moves {
		t.setParent(x, e)
	}
	t.Update(e.Key(), x)
	if edits.moves {
		details := schema.ParentChangedDetails(d.Entity.Parent, e, 0)
		delete(details, "buckets_stamped") // the bucket items are stamped after this change
		if d.Entity.Cascade != e.Cascade {
			details[schema.AttrCascade] = e.Cascade
		}
		if err := t.addAuditEvent(schema.ActionEntityParentChanged, e.ID, "", details); err != nil {
			return err
		}
	}
	if !edits.names {
		return nil
	}
	return t.addAuditEvent(actionMetadataSet, e.ID, "", map[string]any{
		schema.AttrName: e.Name, schema.AttrMetadata: e.Metadata,
	})
}

// setParent sets the parent and the cascade of an entity.
func (t *Change) setParent(x *client.Expression, e *schema.Entity) {
	x.Set = append(x.Set, x.Name(schema.AttrParent)+" = "+x.Value(schema.StringOrNull(e.Parent)),
		x.Name(schema.AttrCascade)+" = "+x.Value(schema.Bool(e.Cascade)))
	x.SetNumber(schema.AttrPGen, e.Generation)
	if e.Parent == "" {
		x.RemoveAll(schema.AttrGSI1PK, schema.AttrGSI1SK)
		return
	}
	x.Set = append(x.Set,
		x.Name(schema.AttrGSI1PK)+" = "+x.Text(schema.ParentPK(t.namespace, e.Parent)),
		x.Name(schema.AttrGSI1SK)+" = "+x.Text(schema.ChildSK(e.ID)))
}

// NewEntity returns a new entity without a parent.
func NewEntity(namespace, name string, now time.Time) (*schema.Entity, error) {
	incarnation, err := schema.NewIncarnation(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &schema.Entity{
		Namespace: namespace, ID: name, Name: name, Generation: now.UnixMilli(), Incarnation: incarnation,
		CreatedAt: schema.Timestamp(now),
	}, nil
}

// declare writes an entity on condition that it does not exist.
func (t *Change) declare(e *schema.Entity) error {
	item, err := e.Item()
	if err != nil {
		return err
	}
	x := &client.Expression{}
	x.RequireAbsent(schema.AttrPK)
	t.Put(item, x)
	return t.addAuditEvent(schema.ActionEntityCreated, e.ID, "", schema.CreatedDetails(e))
}

// planParent requires that the parent exists and that the entity is none of its ancestors. It also
// declares a parent that the Python library has only given limits.
func (a *Admin) planParent(ctx context.Context, t *Change, name, parent string) error {
	field := "entities." + name + ".parent"
	at := parent
	seen := make(map[string]bool)
	for range maxAncestors {
		if seen[at] { // a cycle, which the Python library allows
			return client.Fault(weir.Invalid, field, parent, "leads to a cycle of parents, through "+at)
		}
		seen[at] = true
		if at == name {
			return client.Fault(weir.Invalid, field, parent,
				fmt.Sprintf("leads back to %q, which is a cycle", name))
		}
		item, err := a.Client.GetItem(ctx, schema.MetaKey(a.config.Namespace, at), true)
		if err != nil {
			return err
		}
		e, err := client.Parse(item, schema.ParseEntity)
		if err != nil {
			return err
		}
		if e == nil {
			if at != parent {
				return nil // only the parent itself is required to be declared
			}
			return a.declareParent(ctx, t, field, name, parent)
		}
		t.requireAncestor(e, item, at == parent, name)
		if e.Parent == "" {
			return nil
		}
		at = e.Parent
	}
	return client.Fault(weir.Invalid, field, parent, "has more than 32 ancestors")
}

// AttrNewestChild is the attribute of a META that names the child declared last. Only weir writes
// and reads it; the Python library leaves it alone.
const AttrNewestChild = "newest_child"

// requireAncestor requires an ancestor to be as it was read. For the parent it also raises the
// version and records the child. So if one caller declares a child while another deletes the
// parent, one of the two transactions fails, and its new plan sees the change of the other even if
// the index does not show it yet.
func (t *Change) requireAncestor(
	e *schema.Entity, read schema.Item, isParent bool, child string,
) {
	x := &client.Expression{}
	x.RequireExists(schema.AttrPK)
	x.RequireUnchanged(read, schema.AttrParent)
	if !isParent {
		t.Check(e.Key(), x)
		return
	}
	x.SetText(AttrNewestChild, child)
	x.AddNumber(schema.AttrVersion, 1) // unconditional: a new sibling does not make this fail
	t.Update(e.Key(), x)
}

// requireVersion requires that the entity has not changed after it was read, except by the Python
// library, which does not count versions.
func requireVersion(e *client.Expression, read *schema.Entity) {
	if read.Version == 0 {
		e.RequireAbsentOr(schema.AttrVersion, "=", 0)
		return
	}
	e.Require(schema.AttrVersion, "=", read.Version)
}

func (a *Admin) declareParent(
	ctx context.Context, t *Change, field, child, parent string,
) error {
	own, err := a.config.ReadDefinition(ctx, parent)
	if err != nil {
		return err
	}
	if !own.Declared() {
		return client.Fault(weir.Invalid, field, parent, "is not declared among the entities")
	}
	e, err := NewEntity(a.config.Namespace, parent, t.now)
	if err != nil {
		return err
	}
	e.Extra = schema.Item{AttrNewestChild: schema.String(child)}
	return t.declare(e)
}

// requireMoves requires that no program uses the table that would write an old parent back to a
// bucket item: clients and functions before 0.17 do not know generations.
func (t *Change) requireMoves(item schema.Item) error {
	if item == nil {
		return client.Fault(weir.Unsupported, "table", t.Table, "no longer has a version record")
	}
	v, err := schema.ParseVersion(item)
	if err != nil {
		return client.Unreadable(err)
	}
	if v.Lambda != "" && slices.Compare(tables.Version(v.Lambda), tables.Version(MovesSince)) < 0 {
		return client.Fault(weir.Unsupported, "lambda_version", v.Lambda, "of the table's functions is older than "+
			MovesSince+", the first that applies a changed parent: upgrade the Python library's stack")
	}
	if least, ok := tables.ParseVersion(v.ClientMin); ok && slices.Compare(least, tables.Version(MovesSince)) >= 0 {
		return nil
	}
	x := &client.Expression{}
	x.RequireExists(schema.AttrPK)
	x.RequireUnchanged(item, schema.AttrClientMin)
	x.SetText(schema.AttrClientMin, MovesSince)
	t.Update(schema.VersionKey(), x)
	return nil
}

// ReadEntity returns the definition of an entity, or nil if it is not declared. It leaves out
// limits that weir does not support, and metadata that are not JSON, and reports them to
// Options.OnError.
func (a *Admin) ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	d, err := a.config.ReadDefinition(ctx, name)
	if err != nil || !d.Declared() {
		return nil, err
	}
	out := &weir.EntityDefinition{Limits: make(map[string][]weir.Limit), Version: d.Version()}
	if e := d.Entity; e != nil {
		if e.Parent != "" {
			out.Parent, out.Cascade = e.Parent, e.Cascade
		}
		if e.Name != name {
			out.Name = e.Name
		}
		var others []string
		out.Metadata, others = plainMetadata(e)
		for _, key := range others {
			a.report(client.Fault(weir.Unsupported, "entities."+name+".metadata."+key, "", "is not JSON"))
		}
	}
	for resource, l := range d.Levels {
		if len(l.Limits) > 0 {
			out.Limits[resource] = l.Limits
		}
		a.report(l.Fault)
	}
	return out, nil
}

// plainMetadata returns the metadata of an entity that are JSON, nil if there are none, and the names
// of the others, in order.
func plainMetadata(e *schema.Entity) (plain map[string]any, others []string) {
	for _, key := range slices.Sorted(maps.Keys(e.Metadata)) {
		one, _, reason := metadata.Plain(map[string]any{key: e.Metadata[key]})
		if reason != "" {
			others = append(others, key)
			continue
		}
		if plain == nil {
			plain = make(map[string]any, len(e.Metadata))
		}
		plain[key] = one[key]
	}
	return plain, others
}

// report reports an error that is not returned, unless it is nil.
func (a *Admin) report(err error) {
	if err != nil && a.Options.OnError != nil {
		a.Options.OnError(err)
	}
}

// actionMetadataSet is the audit's name for a change of an entity's display name or metadata.
const actionMetadataSet = "entity_metadata_set"
