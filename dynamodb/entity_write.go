package dynamodb

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

const (
	// maxAncestors is how far up a chain of parents is followed, as the Python library does.
	maxAncestors = 32
	// movesSince is the first release of the Python library that keeps to a parent that was changed.
	movesSince = "0.17.0"
)

// WriteEntity declares an entity or changes its parent and cascade, and tells its buckets. A parent
// that does not exist and a cycle are [weir.Invalid]. Writing what is there already tells the
// buckets again.
func (s *Store) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.end()
	var written *schema.Entity
	err := s.changeConfig(ctx, now, func(ctx context.Context, t *configTransaction) error {
		e, err := s.planEntity(ctx, t, name, parent, cascade)
		written = e
		return err
	})
	if err != nil {
		return err
	}
	if err := s.restamp(ctx, written); err != nil {
		return err
	}
	return s.afterConfigChange(ctx, configChange{
		kind: entityChanged, at: weir.Subject{Entity: name}, entity: written, now: now,
	})
}

// planEntity says what has to be written, so that an entity has this parent and cascade.
func (s *Store) planEntity(
	ctx context.Context, t *configTransaction, name, parent string, cascade bool,
) (*schema.Entity, error) {
	items, err := s.batchGet(ctx, []schema.Key{
		schema.MetaKey(s.namespace, name), schema.SystemConfigKey(s.namespace), schema.VersionKey(),
	}, true)
	if err != nil {
		return nil, err
	}
	if err := t.setRetention(items[1]); err != nil {
		return nil, err
	}
	if parent != "" {
		if err := s.planParent(ctx, t, name, parent); err != nil {
			return nil, err
		}
	}
	e, err := parseEntity(items[0])
	if err != nil {
		return nil, err
	}
	if e == nil {
		if e, err = newEntity(s.namespace, name, t.now); err != nil {
			return nil, err
		}
		e.Parent, e.Cascade = parent, cascade
		return e, t.declare(e)
	}
	if e.Parent == parent && e.Cascade == cascade {
		t.items = nil // the conditions on its ancestors alone
		return e, nil
	}
	if err := t.requireMoves(items[2]); err != nil {
		return nil, err
	}
	return t.move(e, items[0], parent, cascade)
}

// move changes an entity's parent and cascade, on condition that they are as they were read.
func (t *configTransaction) move(
	e *schema.Entity, read schema.Item, parent string, cascade bool,
) (*schema.Entity, error) {
	before := *e
	e.Parent, e.Cascade = parent, cascade
	e.Generation++
	e.Version++
	x := &expression{}
	x.exists(schema.AttrPK)
	for _, a := range []string{
		schema.AttrParent, schema.AttrCascade, schema.AttrPGen, schema.AttrPInc, schema.AttrVersion,
	} {
		x.requireUnchanged(read, a)
	}
	x.set = append(x.set, x.name(schema.AttrParent)+" = "+x.value(schema.StringOrNull(parent)),
		x.name(schema.AttrCascade)+" = "+x.value(schema.Bool(cascade)))
	x.setNumber(schema.AttrPGen, e.Generation)
	x.setNumber(schema.AttrVersion, e.Version)
	if parent == "" {
		x.removeAll(schema.AttrGSI1PK, schema.AttrGSI1SK)
	} else {
		x.set = append(x.set,
			x.name(schema.AttrGSI1PK)+" = "+x.text(schema.ParentPK(t.namespace, parent)),
			x.name(schema.AttrGSI1SK)+" = "+x.text(schema.ChildSK(e.ID)))
	}
	t.update(e.Key(), x)
	details := schema.ParentChangedDetails(before.Parent, e, 0)
	delete(details, "buckets_stamped") // they are told only once this is done
	if before.Cascade != cascade {
		details[schema.AttrCascade] = cascade
	}
	return e, t.addAuditEvent(schema.ActionEntityParentChanged, e.ID, "", details)
}

// newEntity is an entity of which nothing has been said.
func newEntity(namespace, name string, now time.Time) (*schema.Entity, error) {
	incarnation, err := schema.NewIncarnation(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &schema.Entity{
		Namespace: namespace, ID: name, Name: name, Generation: now.UnixMilli(), Incarnation: incarnation,
		CreatedAt: schema.Timestamp(now),
	}, nil
}

// declare writes an entity that must not be there yet.
func (t *configTransaction) declare(e *schema.Entity) error {
	item, err := e.Item()
	if err != nil {
		return err
	}
	x := &expression{}
	x.absent(schema.AttrPK)
	t.put(item, x)
	return t.addAuditEvent(schema.ActionEntityCreated, e.ID, "", schema.CreatedDetails(e))
}

// planParent requires the parent to exist, and none of its ancestors to be the entity. A parent
// that the Python library knows only by its limits is declared with it.
func (s *Store) planParent(ctx context.Context, t *configTransaction, name, parent string) error {
	field := "entities." + name + ".parent"
	at := parent
	seen := make(map[string]bool)
	for range maxAncestors {
		if seen[at] { // the Python library lets them be made
			return fault(weir.Invalid, field, parent, "leads to a cycle of parents, through "+at)
		}
		seen[at] = true
		if at == name {
			return fault(weir.Invalid, field, parent, fmt.Sprintf("leads back to %q: a cycle", name))
		}
		item, err := s.getItem(ctx, schema.MetaKey(s.namespace, at), true)
		if err != nil {
			return err
		}
		e, err := parseEntity(item)
		if err != nil {
			return err
		}
		if e == nil {
			if at != parent {
				return nil // above the parent, nobody cares
			}
			return s.declareParent(ctx, t, field, name, parent)
		}
		t.requireAncestor(e, item, at == parent, name)
		if e.Parent == "" {
			return nil
		}
		at = e.Parent
	}
	return fault(weir.Invalid, field, parent, "has more than 32 ancestors")
}

// attrNewestChild is on a META the entity that was declared last with it as parent. Only weir
// writes and reads it; the Python library leaves it alone.
const attrNewestChild = "newest_child"

// requireAncestor requires an ancestor to be as it was read. A parent gets another version, and learns
// of the child: of two that declare a child and delete its parent at once, one is refused, and then
// sees what the other did, though the index may not show it yet.
func (t *configTransaction) requireAncestor(
	e *schema.Entity, read schema.Item, isParent bool, child string,
) {
	x := &expression{}
	x.exists(schema.AttrPK)
	x.requireUnchanged(read, schema.AttrParent)
	if !isParent {
		t.check(e.Key(), x)
		return
	}
	x.setText(attrNewestChild, child)
	x.addNumber(schema.AttrVersion, 1) // by itself, so that its children need not wait for one another
	t.update(e.Key(), x)
}

// requireVersion requires an entity to have been changed by nobody since it was read, but by the Python
// library, which has no versions.
func (e *expression) requireVersion(read *schema.Entity) {
	if read.Version == 0 {
		e.absentOr(schema.AttrVersion, "=", 0)
		return
	}
	e.require(schema.AttrVersion, "=", read.Version)
}

func (s *Store) declareParent(
	ctx context.Context, t *configTransaction, field, child, parent string,
) error {
	own, err := s.readDefinition(ctx, parent)
	if err != nil {
		return err
	}
	if !own.declared() {
		return fault(weir.Invalid, field, parent, "is not declared among the entities")
	}
	e, err := newEntity(s.namespace, parent, t.now)
	if err != nil {
		return err
	}
	e.Extra = schema.Item{attrNewestChild: schema.String(child)}
	return t.declare(e)
}

// requireMoves sees to it that nobody uses the table who would put an old parent back onto a
// bucket: clients and functions older than 0.17 know nothing of generations.
func (t *configTransaction) requireMoves(item schema.Item) error {
	if item == nil {
		return fault(weir.Unsupported, "table", t.table, "has no version record any more")
	}
	v, err := schema.ParseVersion(item)
	if err != nil {
		return unreadable(err)
	}
	if v.Lambda != "" && slices.Compare(version(v.Lambda), version(movesSince)) < 0 {
		return fault(weir.Unsupported, "lambda_version", v.Lambda, "of the table's functions is older than "+
			movesSince+", which is the first that keeps to a changed parent: upgrade the Python library's stack")
	}
	if least, ok := parseVersion(v.ClientMin); ok && slices.Compare(least, version(movesSince)) >= 0 {
		return nil
	}
	x := &expression{}
	x.exists(schema.AttrPK)
	x.requireUnchanged(item, schema.AttrClientMin)
	x.setText(schema.AttrClientMin, movesSince)
	t.update(schema.VersionKey(), x)
	return nil
}
