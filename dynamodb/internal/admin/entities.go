package admin

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
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
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	var written *schema.Entity
	err := a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		e, err := a.planEntity(ctx, t, name, parent, cascade)
		written = e
		return err
	})
	if err != nil {
		return err
	}
	if err := a.restamp(ctx, written); err != nil {
		return err
	}
	return a.buckets.ApplyConfigChange(ctx, bucketitem.ConfigChange{
		Kind: bucketitem.EntityChanged, At: weir.Subject{Entity: name}, Now: now,
	})
}

// planEntity plans the writes that give an entity this parent and cascade.
func (a *Admin) planEntity(
	ctx context.Context, t *Change, name, parent string, cascade bool,
) (*schema.Entity, error) {
	items, err := a.Client.BatchGet(ctx, []schema.Key{
		schema.MetaKey(a.config.Namespace, name), schema.SystemConfigKey(a.config.Namespace), schema.VersionKey(),
	}, true)
	if err != nil {
		return nil, err
	}
	if err := t.setRetention(items[1]); err != nil {
		return nil, err
	}
	if parent != "" {
		if err := a.planParent(ctx, t, name, parent); err != nil {
			return nil, err
		}
	}
	e, err := client.Parse(items[0], schema.ParseEntity)
	if err != nil {
		return nil, err
	}
	if e == nil {
		if e, err = NewEntity(a.config.Namespace, name, t.now); err != nil {
			return nil, err
		}
		e.Parent, e.Cascade = parent, cascade
		return e, t.declare(e)
	}
	if e.Parent == parent && e.Cascade == cascade {
		t.Items = nil // nothing changes: drop the conditions on the ancestors
		return e, nil
	}
	if err := t.requireMoves(items[2]); err != nil {
		return nil, err
	}
	return t.move(e, items[0], parent, cascade)
}

// move changes an entity's parent and cascade, on condition that they are as they were read.
func (t *Change) move(
	e *schema.Entity, read schema.Item, parent string, cascade bool,
) (*schema.Entity, error) {
	before := *e
	e.Parent, e.Cascade = parent, cascade
	e.Generation++
	e.Version++
	x := &client.Expression{}
	x.RequireExists(schema.AttrPK)
	for _, a := range []string{
		schema.AttrParent, schema.AttrCascade, schema.AttrPGen, schema.AttrPInc, schema.AttrVersion,
	} {
		x.RequireUnchanged(read, a)
	}
	x.Set = append(x.Set, x.Name(schema.AttrParent)+" = "+x.Value(schema.StringOrNull(parent)),
		x.Name(schema.AttrCascade)+" = "+x.Value(schema.Bool(cascade)))
	x.SetNumber(schema.AttrPGen, e.Generation)
	x.SetNumber(schema.AttrVersion, e.Version)
	if parent == "" {
		x.RemoveAll(schema.AttrGSI1PK, schema.AttrGSI1SK)
	} else {
		x.Set = append(x.Set,
			x.Name(schema.AttrGSI1PK)+" = "+x.Text(schema.ParentPK(t.namespace, parent)),
			x.Name(schema.AttrGSI1SK)+" = "+x.Text(schema.ChildSK(e.ID)))
	}
	t.Update(e.Key(), x)
	details := schema.ParentChangedDetails(before.Parent, e, 0)
	delete(details, "buckets_stamped") // the bucket items are stamped after this change
	if before.Cascade != cascade {
		details[schema.AttrCascade] = cascade
	}
	return e, t.addAuditEvent(schema.ActionEntityParentChanged, e.ID, "", details)
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
// limits that weir does not support, and reports them to Options.OnError.
func (a *Admin) ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	d, err := a.config.ReadDefinition(ctx, name)
	if err != nil || !d.Declared() {
		return nil, err
	}
	out := &weir.EntityDefinition{Limits: make(map[string][]weir.Limit)}
	if d.Entity != nil && d.Entity.Parent != "" {
		out.Parent, out.Cascade = d.Entity.Parent, d.Entity.Cascade
	}
	for resource, l := range d.Levels {
		if len(l.Limits) > 0 {
			out.Limits[resource] = l.Limits
		}
		if l.Fault != nil && a.Options.OnError != nil {
			a.Options.OnError(l.Fault)
		}
	}
	return out, nil
}

// actionMetadataSet is the audit's name for a change of an entity's display name or metadata.
const actionMetadataSet = "entity_metadata_set"

// EntityMetadata returns an entity's display name and metadata. Metadata consists of strings,
// bools, int64s, json.Numbers, nil, and maps and slices of them. For an entity without a META, the
// error has code [weir.NotFound].
func (a *Admin) EntityMetadata(
	ctx context.Context, name string, consistent bool,
) (display string, metadata map[string]any, err error) {
	if err := a.running.Enter(); err != nil {
		return "", nil, err
	}
	defer a.running.End()
	e, err := client.Get(ctx, a.Client, schema.MetaKey(a.config.Namespace, name), consistent,
		schema.ParseEntity)
	if err != nil {
		return "", nil, err
	}
	if e == nil {
		return "", nil, client.Fault(weir.NotFound, "entity", name, "is not declared")
	}
	return e.Name, e.Metadata, nil
}

// EditEntity changes an entity's display name and metadata. edit is called with the stored values
// and returns the new ones. If another writer changes them at the same time, edit is called again
// with the values that it stored, so that no change is lost. An error of edit ends the call and is
// returned.
func (a *Admin) EditEntity(
	ctx context.Context, now time.Time, name string,
	edit func(display string, metadata map[string]any) (string, map[string]any, error),
) error {
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	return a.ChangeConfig(ctx, now, func(ctx context.Context, t *Change) error {
		items, err := a.Client.BatchGet(ctx, []schema.Key{
			schema.MetaKey(a.config.Namespace, name), schema.SystemConfigKey(a.config.Namespace),
		}, true)
		if err != nil {
			return err
		}
		if err := t.setRetention(items[1]); err != nil {
			return err
		}
		e, err := client.Parse(items[0], schema.ParseEntity)
		if err != nil {
			return err
		}
		if e == nil {
			return client.Fault(weir.NotFound, "entity", name, "is not declared")
		}
		display, metadata, err := edit(e.Name, e.Metadata)
		if err != nil {
			return err
		}
		stored, err := schema.EncodeMap(metadata)
		if err != nil {
			return &weir.Error{Code: weir.Invalid, Field: "metadata", Reason: "cannot be stored", Err: err}
		}
		x := &client.Expression{}
		x.RequireExists(schema.AttrPK)
		for _, a := range []string{
			schema.AttrVersion, schema.AttrPGen, schema.AttrPInc, schema.AttrParent, schema.AttrCascade,
		} {
			x.RequireUnchanged(items[0], a)
		}
		x.SetText(schema.AttrName, display)
		x.Set = append(x.Set, x.Name(schema.AttrMetadata)+" = "+x.Value(stored))
		x.SetNumber(schema.AttrVersion, e.Version+1)
		t.Update(e.Key(), x)
		return t.addAuditEvent(actionMetadataSet, name, "", map[string]any{
			schema.AttrName: display, schema.AttrMetadata: metadata,
		})
	})
}
