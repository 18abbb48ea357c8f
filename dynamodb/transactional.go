package dynamodb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// executeTransactional makes all charges in one transaction: it reads the items, judges, and writes
// all or none, and the lease's slot with them. It costs twice the write units and a read of each item, and conflicts often on a
// busy parent. It reports false if a bucket has several shards, which would be too many items for
// one transaction; the charges are then made in parallel.
func (s *Store) executeTransactional(ctx context.Context, op *reserveOp) (done bool, err error) {
	if len(op.charges) == 0 { // nothing is charged
		return true, nil
	}
	if s.leases != nil {
		if op.slot, err = s.leases.Transacted(ctx, s.slotWrite(op)); err != nil {
			return false, err
		}
	}
	for range bucketitem.MaxRounds {
		if op.sharded() {
			return false, nil
		}
		if done, err = s.tryTransaction(ctx, op); done || err != nil {
			return done, err
		}
	}
	s.buckets.Counts.Contended.Add(1)
	for _, ic := range op.charges {
		ic.found = bucketitem.Result{Kind: bucketitem.Contended}
	}
	return true, nil
}

// tryTransaction makes one attempt. It reports false if another writer was faster.
func (s *Store) tryTransaction(ctx context.Context, op *reserveOp) (answered bool, err error) {
	images, err := s.readItems(ctx, op)
	if err != nil || op.sharded() {
		return false, err
	}
	writes := make([]*bucketitem.Write, 0, len(op.charges))
	all := true
	for i, ic := range op.charges {
		ic.shard, ic.shardTakes, ic.waiter = 0, nil, ic.newWaiter(ic.takes)
		w, r, err := ic.state.PlanWrite(ctx, ic.waiter, ic.shard, images[i][0])
		if err != nil {
			return false, err
		}
		if w == nil {
			ic.found, all = <-ic.waiter.Answer, false
			continue
		}
		ic.found = r.AdmittedResults[0]
		ic.found.Kind = bucketitem.Taken
		writes = append(writes, w)
	}
	if !all {
		op.noteSeen()
		return true, nil
	}
	done, err := s.writeTransaction(ctx, op, writes)
	if err != nil || !done {
		return op.slotTaken != nil, err
	}
	if op.slot != nil {
		op.out.Version, op.recorded = op.slot.Lease.Version, true
	}
	for i, ic := range op.charges {
		ic.shardTakes = []shardTake{{ic.shard, ic.takes, ic.found.Found}}
		ic.state.ForgetDenials()
		ic.state.Queue(ic.shard).Adopt(writes[i].After, images[i][0])
	}
	return true, nil
}

// writeTransaction writes the items. It reports false if a condition failed or another transaction
// was faster; in the latter case slotTaken is set if the slot of the lease is taken. A single item
// needs no transaction.
func (s *Store) writeTransaction(
	ctx context.Context, op *reserveOp, writes []*bucketitem.Write,
) (bool, error) {
	var err error
	if len(writes) == 1 && op.slot == nil {
		_, err = writes[0].Send(ctx, s.client)
	} else {
		var items []types.TransactWriteItem
		if op.slot != nil {
			items = append(items, op.slot.Item())
		}
		for _, w := range writes {
			items = append(items, w.TransactItems()...)
		}
		_, err = s.client.API.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	}
	switch o := client.OutcomeOf(err); o.Kind {
	case client.WriteApplied:
		return true, nil
	case client.WriteRefused:
		if op.slot != nil && len(o.Reasons) > 0 && client.Text(o.Reasons[0].Code) == client.ReasonCondition {
			op.slotTaken, err = op.slot.Refused(&o.Reasons[0])
			return false, err
		}
		return false, nil
	case client.WriteConflicted:
		return false, nil
	case client.WriteUnknown:
		op.count(s.buckets.Counts.Ambiguous)
	}
	return false, client.Classify(err)
}

// readItems reads all shards of all charges, after the pending writes of this process.
func (s *Store) readItems(ctx context.Context, op *reserveOp) ([][]*bucketitem.Image, error) {
	subjects := make([]*bucketitem.Subject, len(op.charges))
	for i, ic := range op.charges {
		if err := ic.state.Flush(ctx, op.now); err != nil {
			return nil, err
		}
		subjects[i] = ic.state
	}
	return s.buckets.ReadSubjects(ctx, op.now, subjects)
}
