package dynamodb

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
)

// carryOutTogether does all errands in one transaction: items are read, judged, and written whole
// or not at all. It costs twice the writes and a read of every item, and meets conflicts on a busy
// parent. A bucket that is split has more items than a transaction should lock: then the errands go
// their own ways, as without transactions.
func (s *Store) carryOutTogether(ctx context.Context, j *journey) (*weir.Outcome, bool, error) {
	if len(j.errands) == 0 { // nothing is charged
		return j.admittedOutcome(), false, nil
	}
	for range maxRounds {
		if j.sharded() {
			return s.carryOutApart(ctx, j)
		}
		ready, err := s.tryTogether(ctx, j)
		if err != nil {
			return nil, false, err
		}
		if ready {
			return s.concludeJourney(ctx, j)
		}
	}
	s.counts.contended.Add(1)
	for _, e := range j.errands {
		e.found = verdict{ruling: contended}
	}
	return j.deniedOutcome(), false, nil
}

// tryTogether makes one attempt. It reports false where other writers were quicker.
func (s *Store) tryTogether(ctx context.Context, j *journey) (answered bool, err error) {
	images, err := j.readItems(ctx)
	if err != nil || j.sharded() {
		return false, err
	}
	writes := make([]*write, 0, len(j.errands))
	all := true
	for i, e := range j.errands {
		e.shard, e.draws, e.member = 0, nil, j.member(e)
		w, r, err := e.propose(ctx, images[i][0])
		if err != nil {
			return false, err
		}
		if w == nil {
			e.found, all = <-e.member.answer, false
			continue
		}
		e.found = r.fitting[0]
		e.found.ruling = taken
		writes = append(writes, w)
	}
	if !all {
		j.noteDenied()
		return true, nil
	}
	done, err := s.writeTogether(ctx, j, writes)
	if err != nil || !done {
		return false, err
	}
	for i, e := range j.errands {
		e.draws = []draw{{e.shard, e.asks, e.found.found}}
		e.spot.forgive()
		e.spot.line(e.shard).adopt(writes[i].leads, images[i][0])
	}
	return true, nil
}

// noteDenied notes that limits were judged though nothing is written: also those that have enough,
// because another one denied.
func (j *journey) noteDenied() {
	for _, e := range j.errands {
		if e.found.ruling != taken && e.found.ruling != denied {
			return // the reservation is planned anew, or has failed
		}
	}
	for _, e := range j.errands {
		for k := range e.asks {
			a := &e.asks[k]
			e.spot.line(e.shard).note(sighting{a.name, j.now, a.limit, true})
		}
	}
}

// writeTogether writes the items, and reports false where a condition did not hold or another
// transaction was quicker. A single item needs no transaction.
func (s *Store) writeTogether(ctx context.Context, j *journey, writes []*write) (bool, error) {
	var err error
	if len(writes) == 1 {
		_, err = writes[0].send(ctx, s)
	} else {
		var items []types.TransactWriteItem
		for _, w := range writes {
			items = append(items, w.parts()...)
		}
		_, err = s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	}
	switch outcomeOf(err).kind {
	case writeApplied:
		return true, nil
	case writeRefused, writeConflicted:
		return false, nil
	case writeUnknown:
		for _, e := range j.errands {
			for k := range e.asks {
				s.counts.ambiguous(e.asks[k].milli)
			}
		}
	}
	return false, classify(err)
}

// readItems reads all shards of all errands, after what is on its way to them.
func (j *journey) readItems(ctx context.Context) ([][]*image, error) {
	spots := make([]*spot, len(j.errands))
	for i, e := range j.errands {
		if err := e.spot.flush(ctx, j.now); err != nil {
			return nil, err
		}
		spots[i] = e.spot
	}
	return spots[0].store.readBuckets(ctx, j.now, spots...)
}

// sharded reports whether a bucket of the journey is known to be split.
func (j *journey) sharded() bool {
	return slices.ContainsFunc(j.errands, func(e *errand) bool { return e.spot.count() > 1 })
}

// propose decides on the write of one errand, on an image of its own. Nil means that the member has
// its answer.
func (e *errand) propose(ctx context.Context, m *image) (*write, *reckoning, error) {
	real := e.spot.line(e.shard)
	l := &line{
		store: e.spot.store, spot: e.spot, shard: e.shard, image: m, gone: m == nil, seenAt: e.member.number,
		ghosts: real.lost(),
	}
	c := &commit{line: l, members: []*member{e.member}}
	e.member.state.Store(sent)
	c.crowd(ctx)
	for c.pending() {
		w, r, err := c.next(ctx)
		if err != nil {
			return nil, nil, err
		}
		if w != nil && len(r.fits) == 1 {
			return w, r, nil
		}
		if w != nil && c.read != nil && m != nil && !c.read.fulfilled(m) { // see nextKnown
			real.submit(nil, &ride{now: e.member.now, reread: true})
		}
		if w != nil { // also an item that is made, though it has too little
			break
		}
	}
	e.member.tell(verdict{ruling: denied})
	return nil, nil, nil
}

// parts are what the write puts into a transaction.
func (w *write) parts() []types.TransactWriteItem {
	if w.beside == nil {
		return []types.TransactWriteItem{w.inTransaction()}
	}
	return []types.TransactWriteItem{w.inTransaction(), (&write{update: w.beside}).inTransaction()}
}

// inTransaction is the write as a part of a transaction.
func (w *write) inTransaction() types.TransactWriteItem {
	if w.put != nil {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: w.put.TableName, Item: w.put.Item, ConditionExpression: w.put.ConditionExpression,
			ExpressionAttributeNames:            w.put.ExpressionAttributeNames,
			ExpressionAttributeValues:           w.put.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: w.put.ReturnValuesOnConditionCheckFailure,
		}}
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: w.update.TableName, Key: w.update.Key,
		UpdateExpression: w.update.UpdateExpression, ConditionExpression: w.update.ConditionExpression,
		ExpressionAttributeNames:  w.update.ExpressionAttributeNames,
		ExpressionAttributeValues: w.update.ExpressionAttributeValues,
	}}
}
