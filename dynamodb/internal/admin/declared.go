package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// pythonOwner is the owner of a record that the Python library wrote.
const pythonOwner = "the Python library's provisioner"

// largestRecord bounds the names in the record, in bytes. DynamoDB accepts items of 400 KiB.
const largestRecord = 380_000

// storedRecord is the record of declared limits as the table has it.
type storedRecord struct {
	item   schema.Item
	parsed *schema.Provisioner // nil if there is none
}

// declaredKeys are the keys of the record and of the mark of an apply.
func (a *Admin) declaredKeys() (record, mark schema.Key) {
	return schema.ProvisionerKey(a.config.Namespace), schema.ApplyMarkKey(a.config.Namespace)
}

// ReadDeclared returns the record of declared limits, by a consistent read.
func (a *Admin) ReadDeclared(ctx context.Context) (*declare.Record, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	record, mark := a.declaredKeys()
	items, err := a.Client.BatchGet(ctx, []schema.Key{record, mark}, true)
	if err != nil {
		return nil, err
	}
	p, err := client.Parse(items[0], schema.ParseProvisioner)
	if err != nil {
		return nil, err
	}
	m, err := client.Parse(items[1], schema.ParseApplyMark)
	if err != nil {
		return nil, err
	}
	d := &declare.Record{Stored: &storedRecord{items[0], p}}
	if m != nil {
		d.Apply = &declare.Mark{ID: m.ID, By: m.By, At: time.UnixMilli(m.AtMS)}
	}
	if d.Pending, err = a.pendingTasks(ctx); err != nil {
		return nil, err
	}
	if p == nil || p.Own == nil {
		if p != nil || d.Pending > 0 {
			d.Owner = pythonOwner
		}
		if p == nil {
			return d, nil
		}
	}
	d.Hash = p.Hash
	d.AppliedAt, _ = time.Parse(time.RFC3339, p.AppliedAt) // zero if it is something else
	// The union sorts names and drops repeated ones.
	d.Managed = (&declare.Managed{}).Union(&declare.Managed{
		System: p.System, Resources: p.Resources, Limits: withoutEmpty(p.Entities),
	})
	if own := p.Own; own != nil {
		d.Managed.Entities = own.Entities
		d.Managed.Policy, d.Managed.Retention = own.Policy, own.Retention
		d.Again, d.Revision, d.AppliedBy = own.Again, own.Revision, own.AppliedBy
	}
	return d, nil
}

func withoutEmpty(lists map[string][]string) map[string][]string {
	kept := map[string][]string{}
	for name, list := range lists {
		if len(list) > 0 {
			kept[name] = list
		}
	}
	return kept
}

// pendingTasks returns the number of unfinished tasks of the Python library's provisioner.
func (a *Admin) pendingTasks(ctx context.Context) (int, error) {
	pk, prefix := schema.SystemPK(a.config.Namespace), schema.SKProvisioner+"#PENDING#"
	items, err := a.Client.QueryAll(ctx, client.KeysOnly(client.Partition(pk, prefix, true)))
	return len(items), err
}

// WriteDeclared replaces the record of declared limits and its mark, on condition that they are as
// they were read. If the mark has the ID that it had, only its time is written.
func (a *Admin) WriteDeclared(
	ctx context.Context, now time.Time, read, d *declare.Record,
) error {
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	stored, ok := read.Stored.(*storedRecord)
	if !ok {
		return client.Fault(weir.Invalid, "limits", "", "the record was not read from this table")
	}
	if err := a.CheckDeclared(d); err != nil {
		return err
	}
	if d.Apply != nil && d.Apply.By == "" {
		by, err := a.Principal(ctx)
		if err != nil {
			return err
		}
		d.Apply.By = by
	}
	t := &Change{Transaction: client.Transaction{Table: a.Client.TableName}}
	next := stored
	if d.Apply != nil && read.Apply != nil && d.Apply.ID == read.Apply.ID {
		t.renewMark(a.config.Namespace, d.Apply)
	} else {
		d.Revision = read.Revision + 1
		p := a.declaredItem(d)
		if stored.parsed != nil {
			p.Extra = stored.parsed.Extra
		}
		next = &storedRecord{p.Item(), p}
		t.putRecord(stored.item, next.item)
		t.putMark(a.config.Namespace, read.Apply, d.Apply)
	}
	err := a.send(ctx, now, t)
	if errors.Is(err, errMoved) {
		return declare.ClaimLost("the record of the limits that a file manages has changed meanwhile")
	}
	if err == nil {
		d.Stored, d.Owner = next, ""
	}
	return err
}

// CheckDeclared returns an error if a record has more names than an item can hold.
func (*Admin) CheckDeclared(d *declare.Record) error {
	n := sizeOf(d)
	if n <= largestRecord {
		return nil
	}
	return client.Fault(weir.Invalid, "limits", "", fmt.Sprintf("the names of what the file manages "+
		"and of the entities that it would change take %d bytes, and a DynamoDB table holds %d: leave "+
		"entities out of the file, or add them by several applies", n, largestRecord))
}

// putRecord puts the record on condition that it is as it was read.
func (t *Change) putRecord(read, item schema.Item) {
	x := &client.Expression{}
	if read == nil {
		x.RequireAbsent(schema.AttrPK)
	} else {
		for _, attribute := range (*schema.Provisioner)(nil).RequireAsRead() {
			x.RequireUnchanged(read, attribute)
		}
	}
	t.Put(item, x)
}

// putMark puts the mark of an apply in place of that of another, or deletes it if the apply ends.
// The condition on the record is enough for the former.
func (t *Change) putMark(namespace string, was, is *declare.Mark) {
	switch {
	case is != nil:
		t.Put((&schema.ApplyMark{
			Namespace: namespace, ID: is.ID, By: is.By, AtMS: is.At.UnixMilli(),
		}).Item(), nil)
	case was != nil:
		t.Remove(schema.ApplyMarkKey(namespace), markWith(was.ID))
	}
}

// renewMark writes a new time to the mark of an apply.
func (t *Change) renewMark(namespace string, m *declare.Mark) {
	x := markWith(m.ID)
	x.SetNumber(schema.AttrApplyAt, m.At.UnixMilli())
	t.Update(schema.ApplyMarkKey(namespace), x)
}

// markWith requires that the mark is that of the apply with this ID.
func markWith(id string) *client.Expression {
	x := &client.Expression{}
	x.RequireText(schema.AttrApplyID, id)
	return x
}

// declaredItem returns the item of a record.
func (a *Admin) declaredItem(d *declare.Record) *schema.Provisioner {
	p := &schema.Provisioner{
		Namespace: a.config.Namespace, System: d.Managed.System, Resources: d.Managed.Resources,
		Entities: d.Managed.Limits, Hash: d.Hash,
		Own: &schema.OwnDeclared{
			Entities: d.Managed.Entities, Policy: d.Managed.Policy, Retention: d.Managed.Retention,
			Again: d.Again, Revision: d.Revision, AppliedBy: d.AppliedBy,
		},
	}
	if !d.AppliedAt.IsZero() {
		p.AppliedAt = schema.OffsetTimestamp(d.AppliedAt)
	}
	return p
}

// sizeOf returns about how many bytes the names of a record take.
func sizeOf(d *declare.Record) int {
	n := 0
	for _, names := range [][]string{d.Managed.Resources, d.Managed.Entities, d.Again} {
		for _, name := range names {
			n += len(name) + 4
		}
	}
	for name, resources := range d.Managed.Limits {
		n += len(name) + 8
		for _, resource := range resources {
			n += len(resource) + 4
		}
	}
	return n
}

// checkClaim returns an error if the call is part of an apply that was taken over. It is for
// writes outside of transactions.
func (a *Admin) checkClaim(ctx context.Context) error {
	if id := declare.ClaimOf(ctx); id != "" {
		return a.requireClaim(ctx, &Change{}, id)
	}
	return nil
}

// requireClaim requires that the mark is still that of the apply with this ID. The caller has planned
// nothing else yet.
func (a *Admin) requireClaim(ctx context.Context, t *Change, id string) error {
	key := schema.ApplyMarkKey(a.config.Namespace)
	m, err := client.Get(ctx, a.Client, key, true, schema.ParseApplyMark)
	if err != nil {
		return err
	}
	if m == nil || m.ID != id {
		by := ""
		if m != nil && m.By != "" {
			by = " by " + m.By
		}
		return declare.ClaimLost("this apply was taken over" + by + ", and changes nothing more")
	}
	t.claim = markWith(id)
	return nil
}

// LiveSubjects yields the subjects that have a bucket item, by an index.
func (a *Admin) LiveSubjects(
	ctx context.Context, of weir.Subject,
) iter.Seq2[weir.Subject, error] {
	ns := a.config.Namespace
	in := client.Indexed(schema.GSI4, ns, schema.BucketPrefix)
	switch {
	case of.Entity != "":
		pk := schema.EntityPK(ns, of.Entity)
		in = client.Indexed(schema.GSI3, pk, schema.BucketPrefix+of.Resource)
	case of.Resource != "":
		in = client.Indexed(schema.GSI2, schema.ResourcePK(ns, of.Resource), schema.BucketPrefix)
	}
	return func(yield func(weir.Subject, error) bool) {
		var last weir.Subject // the shards of a subject are adjacent
		for id, err := range client.Query(ctx, a.Client, client.KeysOnly(in), bucketID) {
			s := weir.Subject{Entity: id.Entity, Resource: id.Resource}
			if err == nil && (s == last || of.Resource != "" && s.Resource != of.Resource) {
				continue
			}
			if last = s; !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// FollowConfig writes the limits in force to the bucket items of subjects, and goes on after an
// error.
func (a *Admin) FollowConfig(ctx context.Context, now time.Time, subjects []weir.Subject) error {
	if err := a.running.Enter(); err != nil {
		return err
	}
	defer a.running.End()
	errs := make([]error, len(subjects))
	err := client.Parallel(len(subjects), func(i int) error {
		if err := a.buckets.Reread(ctx, now.UnixMilli(), subjects[i]); err != nil {
			errs[i] = &declare.FollowError{Of: subjects[i], Err: err}
		}
		return ctx.Err()
	})
	return errors.Join(err, errors.Join(errs...))
}
