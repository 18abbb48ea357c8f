package leaserecord

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Write is a write of one slot.
type Write struct {
	ID weir.LeaseID
	// Replaces is the version that the slot must have; 0 if it must be empty.
	Replaces uint64
	// Lease is what the slot will hold, with a version that no other write has; nil empties the slot.
	// [Store.Send] sets its Prev.
	Lease *schema.Lease
	// Doubtful reports that the write was sent before and given up, so that it may have been applied.
	Doubtful bool
	// KeepUntil is the Unix millisecond up to which the table must keep the record.
	KeepUntil int64

	slot     int
	result   chan Result // has room for one
	attempts int
}

// Result is the outcome of a write. If Err is nil, the write was applied unless Lost is set.
type Result struct {
	// Lost reports that the slot is not as the write requires. Found is what it holds; nil if it is
	// empty. Applied reports that the write was applied nevertheless, and that another process has
	// changed the slot since.
	Lost    bool
	Found   *schema.Lease
	Applied bool
	// Err says why the write was given up.
	Err error
	// Unknown reports, after an error, that the write may have been applied or may still be, and of a
	// lost one that it may have been applied.
	Unknown bool
}

// queue collects the writes of one record. The lock of the Store guards waiting.
type queue struct {
	*Store
	key     schema.Key
	waiting []*Write
	// keptUntil is the latest time to live that the table has shown, in Unix seconds. Only the
	// goroutine of the queue uses it.
	keptUntil int64
}

// Send puts a write in the queue of its record. The returned channel gets one result, at the latest
// about half a minute after the table has stopped answering. w must not be changed any more.
func (s *Store) Send(w *Write) <-chan Result {
	var key schema.Key
	key, w.slot = schema.LeaseRecordKey(s.namespace, w.ID)
	w.result = make(chan Result, 1)
	if w.Lease != nil {
		w.Lease.Prev = uint32(w.Replaces)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	if q == nil {
		q = &queue{Store: s, key: key}
		s.queues[key] = q
		s.running.Run(q.run)
	}
	q.waiting = append(q.waiting, w)
	return w.result
}

// The bounds of repeating a write. Each pause is twice the one before.
const (
	firstPause  = 50 * time.Millisecond
	maxAttempts = 9
)

// run writes until the queue is empty.
func (q *queue) run() {
	// Callers that were answered together send their writes together. They run first, so that their
	// writes share one call.
	runtime.Gosched()
	for {
		batch := q.next()
		if batch == nil {
			return
		}
		for len(batch) > 0 {
			batch = q.write(batch)
		}
	}
}

// next takes the writes that wait out of the queue, at most one for each slot. It returns nil, and
// ends the queue, if none waits.
func (q *queue) next() []*Write {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch, later []*Write
	var taken [schema.LeaseSlots]bool
	for _, w := range q.waiting {
		if taken[w.slot] {
			later = append(later, w)
			continue
		}
		taken[w.slot] = true
		batch = append(batch, w)
	}
	if q.waiting = later; batch == nil {
		delete(q.queues, q.key)
	}
	return batch
}

// write sends a batch in one call. It returns the writes that are to be sent again.
func (q *queue) write(batch []*Write) []*Write {
	if err := q.registered(batch[0].ID); errors.Is(err, weir.Unavailable) {
		return q.pause(batch, err, false)
	} else if err != nil {
		return q.failed(batch, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
	defer cancel()
	_, err := q.client.API.UpdateItem(ctx, q.input(batch))
	switch o := client.OutcomeOf(err); o.Kind {
	case client.WriteApplied:
		for _, w := range batch {
			w.result <- Result{}
		}
		return nil
	case client.WriteRefused:
		return q.refused(batch, o.Image)
	case client.WriteUnknown:
		return q.pause(batch, client.Classify(err), true)
	case client.WriteConflicted, client.WriteThrottled:
		return q.pause(batch, client.Classify(err), false)
	default:
		return q.failed(batch, client.Classify(err))
	}
}

// registered waits until the slice of a record is registered.
func (q *queue) registered(id weir.LeaseID) error {
	r := q.register(context.Background(), schema.LeaseSlice(id))
	<-r.done
	return r.err
}

// input returns the update that writes all slots of a batch.
func (q *queue) input(batch []*Write) *dynamodb.UpdateItemInput {
	e := expression(batch, q.keptUntil)
	return &dynamodb.UpdateItemInput{
		TableName: &q.client.TableName, Key: q.key.Item(),
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// expression returns the expression that writes all slots of a batch, on the conditions of all.
// keptUntil is the latest time to live that the record has shown, in Unix seconds.
func expression(batch []*Write, keptUntil int64) *client.Expression {
	e := &client.Expression{}
	var keep int64
	for _, w := range batch {
		slot := e.Name(schema.LeaseAttribute(w.slot))
		if w.Replaces == 0 {
			e.RequireAbsent(schema.LeaseAttribute(w.slot))
		} else {
			version := &types.AttributeValueMemberB{Value: schema.LeaseVersion(w.Replaces)}
			e.Conditions = append(e.Conditions, "begins_with("+slot+", "+e.Value(version)+")")
		}
		if w.Lease == nil {
			e.Remove = append(e.Remove, slot)
		} else {
			e.Set = append(e.Set, slot+" = "+e.Value(w.Lease.Encode(w.ID)))
		}
		keep = max(keep, keepSeconds(w.KeepUntil))
	}
	// Two writers may keep the record for different times. The later one stays.
	if keep > keptUntil {
		e.SetNumber(schema.AttrTTL, keep)
		e.RequireAbsentOr(schema.AttrTTL, "<=", keep)
	} else {
		e.Require(schema.AttrTTL, ">=", keep)
	}
	return e
}

// keptUntil returns the time to live of a record, in Unix seconds; 0 if it has none.
func keptUntil(record schema.Item) int64 {
	value, ok := record[schema.AttrTTL]
	if !ok {
		return 0
	}
	ttl, err := schema.Int64(value)
	if err != nil {
		return 0 // the next write sets it
	}
	return ttl
}

// keepSeconds returns the time to live for an instant, a multiple of some minutes: so the leases of
// a record usually agree on it.
func keepSeconds(ms int64) int64 {
	const multiple = 900
	return schema.TTL(ms, multiple) / multiple * multiple
}

// refused answers the writes whose slot is not as they require by the record that DynamoDB has
// returned, and those that an earlier attempt has applied. It returns the others.
func (q *queue) refused(batch []*Write, record schema.Item) []*Write {
	q.keptUntil = keptUntil(record)
	var again []*Write
	for _, w := range batch {
		found, err := parse(record, w.ID)
		var version uint64
		if found != nil {
			version = found.Version
		}
		switch {
		case err != nil:
			w.result <- Result{Lost: true, Err: err}
		case w.Lease != nil && version == w.Lease.Version, w.Lease == nil && w.Replaces != 0 && found == nil:
			w.result <- Result{} // an earlier attempt was applied
		case version == w.Replaces:
			again = append(again, w)
		default:
			w.result <- w.lost(found)
		}
	}
	return again
}

// lost returns the result of a write that found something else in its slot. If an attempt may have
// been applied, the slot tells whether it was, unless other processes have changed it twice since.
func (w *Write) lost(found *schema.Lease) Result {
	applied := w.Doubtful && w.Lease != nil && found != nil && found.Prev == uint32(w.Lease.Version)
	return Result{Lost: true, Found: found, Applied: applied, Unknown: w.Doubtful && !applied}
}

// pause waits before writes are sent again, longer each time. It gives up those that were sent too
// often, and on a store that is closing all that were sent twice.
func (q *queue) pause(batch []*Write, err error, unknown bool) []*Write {
	var again []*Write
	longest := 0
	for _, w := range batch {
		w.Doubtful = w.Doubtful || unknown
		if w.attempts++; w.attempts >= maxAttempts || w.attempts > 1 && q.running.Closed.Load() {
			w.result <- Result{Err: err, Unknown: w.Doubtful}
			continue
		}
		again = append(again, w)
		longest = max(longest, w.attempts)
	}
	if len(again) > 0 && !q.running.Closed.Load() {
		t := time.NewTimer(firstPause << (longest - 1))
		defer t.Stop()
		select {
		case <-t.C:
		case <-q.running.Ending:
		}
	}
	return again
}

// failed answers writes that were refused for another reason than their conditions.
func (q *queue) failed(batch []*Write, err error) []*Write {
	for _, w := range batch {
		w.result <- Result{Err: err, Unknown: w.Doubtful}
	}
	return nil
}
