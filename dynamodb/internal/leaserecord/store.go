// Package leaserecord writes the lease records of a namespace. A lease record is an item with up to
// eight leases, each in a slot of its own (docs/adr/0036-leases-in-the-table.md).
//
// A caller passes a [Write] of one slot to [Store.Send] and waits for its [Result]. Every write has
// a condition on its slot: the slot is empty, or has the version that the caller saw. The writes of
// one record go through a queue, which runs in a goroutine while it has work: one UpdateItem is in
// flight for a record and process, and the writes that arrive meanwhile go with the next one. If
// the condition fails, DynamoDB returns the record. The queue answers the writes whose slot has
// changed, and sends the others again.
//
// A write whose answer was lost is sent again too: the version of a write is random, so that the
// slot shows whether an earlier attempt was applied, and if an attempt arrives late its condition
// fails.
//
// The lock of the Store guards the queues and the slices of time that this process knows to be
// registered. It is not locked during a call to DynamoDB.
package leaserecord

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Store reads and writes the lease records of one namespace. All methods may be called
// concurrently.
type Store struct {
	client    *client.Client
	namespace string
	running   *client.Tasks
	timeout   time.Duration // of one write

	mu     sync.Mutex
	queues map[schema.Key]*queue
	known  map[string]*registration // by the name of the slice
}

// New returns the store of a namespace. A write without an answer is sent again after the timeout.
func New(c *client.Client, namespace string, running *client.Tasks, timeout time.Duration) *Store {
	return &Store{
		client: c, namespace: namespace, running: running, timeout: timeout,
		queues: make(map[schema.Key]*queue), known: make(map[string]*registration),
	}
}

// Read returns the lease in a slot, or nil. The read is consistent. The error for a slot that was
// altered, or written by a newer weir, is from [client.Unreadable].
func (s *Store) Read(ctx context.Context, id weir.LeaseID) (*schema.Lease, error) {
	key, _ := schema.LeaseRecordKey(s.namespace, id)
	item, err := s.client.GetItem(ctx, key, true)
	if err != nil {
		return nil, err
	}
	return parse(item, id)
}

func parse(item schema.Item, id weir.LeaseID) (*schema.Lease, error) {
	l, err := schema.ParseLease(item, id)
	if err != nil {
		return nil, client.Unreadable(err)
	}
	return l, nil
}

// Recorded reports whether the namespace has slices with lease records.
func (s *Store) Recorded(ctx context.Context) (bool, error) {
	key := schema.LeaseSlicesKey(s.namespace)
	registry, err := client.Get(ctx, s.client, key, true, schema.ParseLeaseSlices)
	return registry != nil && len(registry.Names) > 0, err
}

// registration is the entry of a slice in the registry of slices, by which a purge finds the
// records of the slice.
type registration struct {
	done chan struct{} // closed when err is set
	err  error
}

// Register begins to register the slice of a lease ID, unless this process has done so. The first
// write of a record in the slice waits for it.
func (s *Store) Register(ctx context.Context, id weir.LeaseID) {
	s.register(ctx, schema.LeaseSlice(id))
}

// register registers a slice in the background: other calls wait for it too.
func (s *Store) register(ctx context.Context, slice string) *registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[slice]
	if r == nil {
		r = &registration{done: make(chan struct{})}
		s.known[slice] = r
		s.running.Run(func() {
			if r.err = s.writeSlice(context.WithoutCancel(ctx), slice); r.err != nil {
				s.mu.Lock()
				delete(s.known, slice) // the next call tries again
				s.mu.Unlock()
			}
			close(r.done)
		})
	}
	return r
}

// forgetSlices is the age at which a slice leaves the registry. DynamoDB has deleted its records
// then, except those of leases that were extended all this time.
const forgetSlices = 60 * 24 * time.Hour

// writeSlice adds a slice to the registry and removes those of long ago. Repeating it changes
// nothing.
func (s *Store) writeSlice(ctx context.Context, slice string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	key := schema.LeaseSlicesKey(s.namespace)
	e := &client.Expression{}
	e.SetIfAbsent(schema.AttrGSI4PK, schema.String(s.namespace))
	e.SetIfAbsent(schema.AttrGSI4SK, schema.String(key.PK))
	e.Add = append(e.Add, e.Name(schema.AttrSlices)+" "+e.Value(schema.StringSet(slice)))
	out, err := s.client.API.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.client.TableName, Key: key.Item(), UpdateExpression: e.Update(),
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return client.Classify(err)
	}
	all, err := client.Parse(out.Attributes, schema.ParseLeaseSlices)
	if err != nil {
		return err
	}
	before := schema.LeaseSliceAt(schema.LeaseSliceStart(slice).Add(-forgetSlices))
	old := slices.DeleteFunc(all.Names, func(name string) bool { return name >= before })
	if len(old) == 0 {
		return nil
	}
	e = &client.Expression{}
	update := "DELETE " + e.Name(schema.AttrSlices) + " " + e.Value(schema.StringSet(old...))
	_, err = s.client.API.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.client.TableName, Key: key.Item(), UpdateExpression: &update,
		ExpressionAttributeNames: e.Names, ExpressionAttributeValues: e.Values,
	})
	return client.Classify(err)
}
