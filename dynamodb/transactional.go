package dynamodb

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// executeTransactional does all errands in one transaction: items are read, judged, and written whole
// or not at all. It costs twice the writes and a read of every item, and meets conflicts on a busy
// parent. A bucket that is split has more items than a transaction should lock: then the errands go
// their own ways, as without transactions.
func (s *Store) executeTransactional(ctx context.Context, j *reserveOp) (*weir.Outcome, bool, error) {
	if len(j.itemCharges) == 0 { // nothing is charged
		return j.admitted(), false, nil
	}
	for range bucketitem.MaxRounds {
		if j.sharded() {
			return s.executeParallel(ctx, j)
		}
		ready, err := s.tryTransaction(ctx, j)
		if err != nil {
			return nil, false, err
		}
		if ready {
			return s.finishReserve(ctx, j)
		}
	}
	s.buckets.Counts.Contended.Add(1)
	for _, e := range j.itemCharges {
		e.found = bucketitem.Result{Kind: bucketitem.Contended}
	}
	return j.deniedOutcome(), false, nil
}

// tryTransaction makes one attempt. It reports false where other writers were quicker.
func (s *Store) tryTransaction(ctx context.Context, j *reserveOp) (answered bool, err error) {
	images, err := s.readItems(ctx, j)
	if err != nil || j.sharded() {
		return false, err
	}
	writes := make([]*bucketitem.Write, 0, len(j.itemCharges))
	all := true
	for i, e := range j.itemCharges {
		e.shard, e.shardTakes, e.waiter = 0, nil, j.waiterFor(e)
		w, r, err := e.state.PlanWrite(ctx, e.waiter, e.shard, images[i][0])
		if err != nil {
			return false, err
		}
		if w == nil {
			e.found, all = <-e.waiter.Answer, false
			continue
		}
		e.found = r.AdmittedResults[0]
		e.found.Kind = bucketitem.Taken
		writes = append(writes, w)
	}
	if !all {
		j.noteSeen()
		return true, nil
	}
	done, err := s.writeTransaction(ctx, j, writes)
	if err != nil || !done {
		return false, err
	}
	for i, e := range j.itemCharges {
		e.shardTakes = []shardTake{{e.shard, e.takes, e.found.Found}}
		e.state.ForgetDenials()
		e.state.Queue(e.shard).Adopt(writes[i].After, images[i][0])
	}
	return true, nil
}

// noteSeen notes that limits were judged though nothing is written: also those that have enough,
// because another one denied.
func (j *reserveOp) noteSeen() {
	for _, e := range j.itemCharges {
		if e.found.Kind != bucketitem.Taken && e.found.Kind != bucketitem.Denied {
			return // the reservation is planned anew, or has failed
		}
	}
	for _, e := range j.itemCharges {
		for k := range e.takes {
			a := &e.takes[k]
			e.state.Queue(e.shard).NoteSeen(bucketitem.SeenLimit{Name: a.Name, Now: j.now, Limit: a.Limit, Denied: true})
		}
	}
}

// writeTransaction writes the items, and reports false where a condition did not hold or another
// transaction was quicker. A single item needs no transaction.
func (s *Store) writeTransaction(ctx context.Context, j *reserveOp, writes []*bucketitem.Write) (bool, error) {
	var err error
	if len(writes) == 1 {
		_, err = writes[0].Send(ctx, s.client)
	} else {
		var items []types.TransactWriteItem
		for _, w := range writes {
			items = append(items, w.TransactItems()...)
		}
		_, err = s.client.API.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	}
	switch client.OutcomeOf(err).Kind {
	case client.WriteApplied:
		return true, nil
	case client.WriteRefused, client.WriteConflicted:
		return false, nil
	case client.WriteUnknown:
		for _, e := range j.itemCharges {
			for k := range e.takes {
				s.buckets.Counts.Ambiguous(e.takes[k].Milli)
			}
		}
	}
	return false, client.Classify(err)
}

// readItems reads all shards of all errands, after what is on its way to them.
func (s *Store) readItems(ctx context.Context, j *reserveOp) ([][]*bucketitem.Image, error) {
	spots := make([]*bucketitem.Subject, len(j.itemCharges))
	for i, e := range j.itemCharges {
		if err := e.state.Flush(ctx, j.now); err != nil {
			return nil, err
		}
		spots[i] = e.state
	}
	return s.buckets.ReadSubjects(ctx, j.now, spots)
}

// sharded reports whether a bucket of the journey is known to be split.
func (j *reserveOp) sharded() bool {
	return slices.ContainsFunc(j.itemCharges, func(e *itemCharge) bool { return e.state.ShardCount() > 1 })
}
