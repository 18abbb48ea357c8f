package bucketitem

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/internal/schema"
)

// maxOldAttempts bounds the attempts to replace old items that other writers change.
const maxOldAttempts = 10

// takeOldItem puts the bucket item in the place of the items of an older layout, while the
// table is being migrated. It reports whether the commit has an image now. The balances are
// carried over as they are; the next write judges by them and brings them to the configuration.
func (c *commit) takeOldItem(ctx context.Context) (found bool, err error) {
	if c.shard > 0 || c.image != nil || c.ns.Old.Over() { // an image is of a stub: an item exists
		return false, nil
	}
	c.sentAt = c.ns.Calls.Load()
	item, _, err := c.ns.moveOld(ctx, c.subject, c.owner, c.config.permanent(), c.now())
	if err != nil || item == nil {
		return false, err
	}
	if c.config.fallback {
		c.config = nil // it was made without the item
	}
	return true, c.setImage(ctx, item, nil)
}

// moveOld replaces the old items of a subject by a bucket item, in one transaction, and returns
// that item; nil if there are no old items. If a bucket item exists already, it returns that,
// and made is false.
func (s *namespaceState) moveOld(
	ctx context.Context, p *subjectState, o owner, permanent bool, now int64,
) (item schema.Item, made bool, err error) {
	var last error
	for attempt := range maxOldAttempts {
		b, err := s.Old.Find(ctx, p.Subject)
		if err != nil || b == nil {
			return nil, false, err
		}
		t := p.writer(0).oldWrite(b, o, permanent, now)
		_, err = s.Client.API.TransactWriteItems(ctx,
			&dynamodb.TransactWriteItemsInput{TransactItems: t.Items})
		out := client.OutcomeOf(err)
		switch out.Kind {
		case client.WriteApplied:
			return t.Items[0].Put.Item, true, nil
		case client.WriteFailed:
			return nil, false, client.Classify(err)
		case client.WriteRefused:
			if item := cancelledItem(out.Reasons); item != nil {
				return item, false, nil
			}
		}
		last = err
		if err := client.BackOff(ctx, attempt); err != nil {
			return nil, false, err
		}
	}
	return nil, false, client.Classify(last)
}

// oldWrite returns the transaction that replaces old items.
func (b *itemWriter) oldWrite(
	old *oldtable.Buckets, o owner, permanent bool, now int64,
) *client.Transaction {
	made := old.Bucket
	made.Cascade, made.Parent = o.cascade, o.parent
	made.Generation, made.Incarnation, made.Stamped = o.generation, o.incarnation, o.stamped
	if secs, ok := schema.BucketSeconds(made.Limits, b.ttlMultiplier); ok && !permanent {
		made.TTL = max(schema.TTL(now, secs), newImage(made, nil, 1, now).debtRepaidAt())
	}
	e := &client.Expression{}
	e.RequireAbsent(schema.AttrPK)
	t := &client.Transaction{Table: b.table}
	t.Put(made.Item(), e)
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	t.Items[0].Put.ReturnValuesOnConditionCheckFailure = all
	old.Remove(t)
	return t
}

// MoveOld replaces the old items of a subject by a bucket item with the limits of the
// configuration. It reports whether there were any. Old items beside a bucket item that exists
// are deleted. What they count as consumed since the beginning of the migration is charged: an
// old process that was not stopped has admitted it.
func (s *Store) MoveOld(ctx context.Context, of weir.Subject, since, now int64) (bool, error) {
	p := s.Subject(of)
	defer p.Release()
	config, err := s.Config.ReadSubject(ctx, of, true)
	if err != nil {
		return false, err
	}
	winner := config.Winner()
	permanent := winner != nil && !schema.Expires(winner.Level)
	item, made, err := s.moveOld(ctx, p.subjectState, ownerOf(config), permanent, now)
	if err != nil || item == nil {
		return false, err
	}
	if !made {
		return true, s.dropOld(ctx, p.subjectState, since)
	}
	b, err := p.parseItem(item)
	if err != nil {
		return false, err
	}
	t := &Config{}
	if winner != nil {
		t.Limits = winner.Limits
	}
	if winner == nil || winner.Fault != nil || t.matches(newImage(b, nil, p.ShardCount(), now)) {
		return true, nil
	}
	return true, p.Queue(0).reread(ctx, now)
}

// dropOld deletes old items beside a bucket item.
func (s *namespaceState) dropOld(ctx context.Context, p *subjectState, since int64) error {
	for attempt := 0; ; attempt++ {
		b, err := s.Old.Find(ctx, p.Subject)
		if err != nil || b == nil {
			return err
		}
		t := &client.Transaction{Table: s.Client.TableName}
		if b.Bucket.RefilledMS >= since {
			e := &client.Expression{}
			e.RequireExists(schema.AttrPK)
			for i := range b.Bucket.Limits {
				name := b.Bucket.Limits[i].Name
				e.AddNumber(schema.BucketAttribute(name, schema.FieldBalance), -b.Consumed[name])
			}
			if e.Update() != nil {
				t.Update(p.id(0).Key(), e)
			}
		}
		b.Remove(t)
		_, err = s.Client.API.TransactWriteItems(ctx,
			&dynamodb.TransactWriteItemsInput{TransactItems: t.Items})
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			return nil
		case client.WriteFailed:
			return client.Classify(err)
		}
		if attempt == maxOldAttempts {
			return client.Classify(err)
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// ReadOld returns the images of a subject whose first shard does not exist, with that of the item
// that would replace its old items, if it has some. It writes nothing.
func (p *Subject) ReadOld(ctx context.Context, now int64, images []*Image) ([]*Image, error) {
	if p.ns.Old.Over() {
		return images, nil
	}
	b, err := p.ns.Old.Find(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	if b == nil { // they may have been replaced after the images were read
		return p.ReadAll(ctx, now)
	}
	images[0] = newImage(b.Bucket, nil, len(images), now)
	return images, nil
}
