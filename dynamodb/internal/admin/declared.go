package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

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

// ReadDeclared returns the record of declared limits, by a consistent read.
func (a *Admin) ReadDeclared(ctx context.Context) (*declare.Record, error) {
	if err := a.running.Enter(); err != nil {
		return nil, err
	}
	defer a.running.End()
	item, err := a.Client.GetItem(ctx, schema.ProvisionerKey(a.config.Namespace), true)
	if err != nil {
		return nil, err
	}
	p, err := client.Parse(item, schema.ParseProvisioner)
	if err != nil {
		return nil, err
	}
	d := &declare.Record{Stored: &storedRecord{item, p}}
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
		if own.Apply != nil {
			d.Apply = &declare.Mark{ID: own.Apply.ID, By: own.Apply.By, At: time.UnixMilli(own.Apply.AtMS)}
		}
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

// WriteDeclared replaces the record of declared limits, on condition that it is as it was read.
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
	if n := sizeOf(&d.Managed); n > largestRecord {
		return client.Fault(weir.Invalid, "limits", fmt.Sprint(n),
			fmt.Sprintf("has too many names for a DynamoDB table: at most %d bytes of them", largestRecord))
	}
	if d.Apply != nil && d.Apply.By == "" {
		by, err := a.Principal(ctx)
		if err != nil {
			return err
		}
		d.Apply.By = by
	}
	d.Revision = read.Revision + 1
	p := a.declaredItem(d)
	if stored.parsed != nil {
		p.Extra = stored.parsed.Extra
	}
	next := &storedRecord{p.Item(), p}
	if err := a.putDeclared(ctx, stored.item, next.item, d); err != nil {
		return err
	}
	d.Stored, d.Owner = next, ""
	return nil
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
	if m := d.Apply; m != nil {
		p.Own.Apply = &schema.ApplyMark{ID: m.ID, By: m.By, AtMS: m.At.UnixMilli()}
	}
	return p
}

// putDeclared puts the record. It may be sent again after a lost answer: the item then shows
// whether the first one was applied, because no other write has its revision and its mark.
func (a *Admin) putDeclared(
	ctx context.Context, read, item schema.Item, d *declare.Record,
) error {
	x := &client.Expression{}
	if read == nil {
		x.RequireAbsent(schema.AttrPK)
	} else {
		for _, attribute := range (*schema.Provisioner)(nil).RequireAsRead() {
			x.RequireUnchanged(read, attribute)
		}
	}
	in := &ddb.PutItemInput{
		TableName: &a.Client.TableName, Item: item, ConditionExpression: x.Condition(),
		ExpressionAttributeNames: x.Names, ExpressionAttributeValues: x.Values,
	}
	var err error
	for attempt := range maxSends {
		_, err = a.Client.API.PutItem(ctx, in)
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			return nil
		case client.WriteRefused:
			key := schema.ProvisionerKey(a.config.Namespace)
			now, err := client.Get(ctx, a.Client, key, true, schema.ParseProvisioner)
			if err == nil && sameDeclared(now, d) {
				return nil
			}
			return declare.ClaimLost("the record of the limits that a file manages has changed meanwhile")
		case client.WriteConflicted, client.WriteThrottled:
			if waiting := client.BackOff(ctx, attempt); waiting != nil {
				return client.Classify(err)
			}
		default:
			return client.Classify(err) // the SDK has retried already
		}
	}
	return client.Classify(err)
}

// sameDeclared reports whether the table has the record that was to be written.
func sameDeclared(now *schema.Provisioner, d *declare.Record) bool {
	if now == nil || now.Own == nil || now.Own.Revision != d.Revision || now.Hash != d.Hash {
		return false
	}
	mark := now.Own.Apply
	if mark == nil || d.Apply == nil {
		return mark == nil && d.Apply == nil
	}
	return mark.ID == d.Apply.ID
}

// sizeOf returns about how many bytes the names of a set take in the record.
func sizeOf(m *declare.Managed) int {
	n := 0
	for _, name := range m.Resources {
		n += len(name) + 4
	}
	for _, name := range m.Entities {
		n += len(name) + 4
	}
	for name, resources := range m.Limits {
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

// requireClaim requires that the apply with this ID still has the record. The caller has planned
// nothing else yet.
func (a *Admin) requireClaim(ctx context.Context, t *Change, id string) error {
	key := schema.ProvisionerKey(a.config.Namespace)
	p, err := client.Get(ctx, a.Client, key, true, schema.ParseProvisioner)
	if err != nil {
		return err
	}
	if p == nil || p.Own == nil || p.Own.Apply == nil || p.Own.Apply.ID != id {
		by := ""
		if p != nil && p.Own != nil && p.Own.Apply != nil {
			by = " by " + p.Own.Apply.By
		}
		return declare.ClaimLost("this apply was taken over" + by + ", and changes nothing more")
	}
	x := &client.Expression{}
	attribute, part := schema.ApplyPath()
	x.Conditions = append(x.Conditions, x.Name(attribute)+"."+x.Name(part)+" = "+x.Text(id))
	t.claim = x
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
		errs[i] = a.buckets.Reread(ctx, now.UnixMilli(), subjects[i])
		return ctx.Err()
	})
	return errors.Join(err, errors.Join(errs...))
}
