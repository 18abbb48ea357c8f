package tables

import (
	"context"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// purgePasses is the largest number of times that the index is read until it is empty. It lags
// behind the table, and a program that still has the namespace open may write.
const purgePasses = 8

// Purge deletes everything under the ID of a namespace.
type Purge struct {
	*Table
	ID       string
	progress func(deleted int64) // may be nil
	deleted  int64               // so far; an item that the index still shows counts twice
}

// PurgeNamespace deletes all data of a deleted namespace, and then its registration. After its
// first write it cannot be undone; the next call continues an interrupted purge. An ID that is not
// registered may have items too, and these are deleted.
func (c *Table) PurgeNamespace(
	ctx context.Context, id string, scan bool, progress func(deleted int64),
) (deleted int64, err error) {
	p := &Purge{Table: c, ID: id, progress: progress}
	known, err := p.Begin(ctx)
	if err != nil {
		return 0, err
	}
	if err := p.deleteAll(ctx, scan); err != nil {
		return p.deleted, err
	}
	switch {
	case known == nil && p.deleted == 0:
		return 0, c.noSuchID(id)
	case known == nil:
		return p.deleted, nil
	}
	return p.deleted, p.forget(ctx, known)
}

// Begin sets the namespace's status to purging, so that it cannot be recovered while a part of it
// is deleted. A namespace that a name leads to is not purged, whatever its status.
func (p *Purge) Begin(ctx context.Context) (*schema.Namespace, error) {
	n, err := p.ByID(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	name, err := p.nameOf(ctx, p.ID)
	switch {
	case err != nil:
		return nil, err
	case name != "":
		return nil, client.Fault(weir.Conflict, "namespace_id", p.ID,
			"is the ID of the namespace "+name+
				", which is not deleted: only a deleted namespace can be purged: run weir namespace delete "+name)
	case n == nil, n.Status == schema.StatusPurging:
		return n, nil
	case n.Status != schema.StatusDeleted && n.Name != "":
		return nil, client.Fault(weir.Conflict, "namespace_id", p.ID, "has lost its name "+n.Name+
			": only a deleted namespace can be purged: run weir namespace recover "+p.ID+
			", and then weir namespace delete "+n.Name)
	}
	t := &client.Transaction{Table: p.TableName}
	e := &client.Expression{}
	e.SetText(schema.AttrStatus, schema.StatusPurging)
	e.RequireText(schema.AttrStatus, n.Status)
	t.Update(schema.NamespaceIDKey(p.ID), e)
	p.requireNoName(t, n)
	return n, p.changed("namespace_id", p.ID, p.transact(ctx, t))
}

// requireNoName requires that the former name of the namespace does not lead to it.
func (p *Purge) requireNoName(t *client.Transaction, n *schema.Namespace) {
	if n.Name == "" {
		return
	}
	e := &client.Expression{}
	e.RequireOtherText(schema.AttrNamespaceID, p.ID)
	t.Check(schema.NamespaceKey(n.Name), e)
}

// forget deletes the registration of the namespace, unless it is in use again: the Python library
// recovers a namespace without checking for a purge.
func (p *Purge) forget(ctx context.Context, n *schema.Namespace) error {
	t := &client.Transaction{Table: p.TableName}
	e := &client.Expression{}
	e.Conditions = append(e.Conditions, "attribute_not_exists("+e.Name(schema.AttrPK)+") OR "+
		e.Name(schema.AttrStatus)+" = "+e.Text(schema.StatusPurging))
	t.Remove(schema.NamespaceIDKey(p.ID), e)
	p.requireNoName(t, n)
	err := p.transact(ctx, t)
	if client.OutcomeOf(err).Kind == client.WriteRefused {
		return client.Fault(weir.Conflict, "namespace_id", p.ID,
			"was recovered by another program at the same time, "+
				"and some of its data is deleted: keep using the rest, or delete and purge it again")
	}
	return client.Classify(err)
}

// deleteAll deletes the items. The system's partition is deleted last: it names the other
// partitions, which the next call must find if this one is interrupted.
func (p *Purge) deleteAll(ctx context.Context, scan bool) error {
	system := schema.SystemPK(p.ID)
	for attempt := range purgePasses {
		if attempt > 0 {
			if err := client.BackOff(ctx, attempt-1); err != nil {
				return err
			}
		}
		found, err := p.query(ctx, client.Indexed(schema.GSI4, p.ID, ""), system)
		if err != nil {
			return err
		}
		if found == 0 {
			if err := p.unlisted(ctx, scan); err != nil {
				return err
			}
			_, err := p.query(ctx, client.Partition(system, "", true), "")
			return err
		}
	}
	return client.Fault(weir.Unavailable, "namespace_id", p.ID,
		"still receives new items: stop the programs that have it open, and purge it again")
}

// unlisted deletes items that lack the index key, so that no index lists them. The configuration
// written by the Python library's provisioner is of this kind; it is found by the provisioner's own
// record and by the resources that were ever configured.
func (p *Purge) unlisted(ctx context.Context, scan bool) error {
	if scan {
		return p.scan(ctx)
	}
	if err := p.leases(ctx); err != nil {
		return err
	}
	managed, err := client.Get(ctx, p.Client, schema.ProvisionerKey(p.ID), true, schema.ParseProvisioner)
	if err != nil {
		return err
	}
	registered, err := client.Get(ctx, p.Client, schema.ResourcesKey(p.ID), true, schema.ParseResources)
	if err != nil {
		return err
	}
	var places []string
	if managed != nil {
		for entity := range managed.Entities {
			places = append(places, schema.EntityPK(p.ID, entity))
		}
		for _, resource := range managed.Resources {
			places = append(places, schema.ResourcePK(p.ID, resource))
		}
	}
	if registered != nil {
		for _, resource := range registered.Names {
			places = append(places, schema.ResourcePK(p.ID, resource))
		}
	}
	for _, pk := range places {
		if _, err := p.query(ctx, client.Partition(pk, "", true), ""); err != nil {
			return err
		}
	}
	return nil
}

// leases deletes the lease records, which no index lists. The registry names the slices of time that
// have some.
func (p *Purge) leases(ctx context.Context) error {
	key := schema.LeaseSlicesKey(p.ID)
	slices, err := client.Get(ctx, p.Client, key, true, schema.ParseLeaseSlices)
	if err != nil || slices == nil {
		return err
	}
	for _, slice := range slices.Names {
		for _, partition := range schema.LeasePartitions {
			pk := schema.LeasesPK(p.ID, slice, string(partition))
			if _, err := p.query(ctx, client.Partition(pk, "", true), ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// query deletes the items of a query, except those of one partition, and returns the number found.
func (p *Purge) query(
	ctx context.Context, in *ddb.QueryInput, except string,
) (found int, err error) {
	in.ProjectionExpression = new("#k0, #k1")
	in.ExpressionAttributeNames["#k0"] = schema.AttrPK
	in.ExpressionAttributeNames["#k1"] = schema.AttrSK
	if in.IndexName == nil { // #n0 is the PK then, and a name has one alias only
		in.ProjectionExpression = new("#n0, #k1")
		delete(in.ExpressionAttributeNames, "#k0")
	}
	for page, err := range p.QueryPages(ctx, in) {
		if err != nil {
			return found, err
		}
		n, err := p.remove(ctx, page, except)
		found += n
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// scan reads the whole table for items of the namespace.
func (p *Purge) scan(ctx context.Context) error {
	in := &ddb.ScanInput{
		TableName: &p.TableName, FilterExpression: new("begins_with(#n0, :v0)"),
		ProjectionExpression:      new("#n0, #n1"),
		ExpressionAttributeNames:  map[string]string{"#n0": schema.AttrPK, "#n1": schema.AttrSK},
		ExpressionAttributeValues: schema.Item{":v0": schema.String(p.ID + "/")},
	}
	for {
		out, err := p.API.Scan(ctx, in)
		if err != nil {
			return client.Classify(err)
		}
		if _, err := p.remove(ctx, out.Items, schema.SystemPK(p.ID)); err != nil {
			return err
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// remove deletes items by their keys. It skips an item that is not under the namespace's ID, even
// if the namespace's index lists it.
func (p *Purge) remove(
	ctx context.Context, items []schema.Item, except string,
) (found int, err error) {
	var keys []schema.Key
	for _, item := range items {
		key, err := schema.KeyOf(item)
		if err != nil {
			return 0, client.Unreadable(err)
		}
		if strings.HasPrefix(key.PK, p.ID+"/") && key.PK != except {
			keys = append(keys, key)
		}
	}
	if err := p.BatchDelete(ctx, keys); err != nil {
		return 0, err
	}
	p.deleted += int64(len(keys))
	if p.progress != nil {
		p.progress(p.deleted)
	}
	return len(keys), nil
}
