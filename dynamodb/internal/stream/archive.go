package stream

import (
	"context"
	"errors"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Archive is where events of the audit go that DynamoDB removed because of their ttl.
type Archive interface {
	// Put writes an object, in place of one with the same key. Several calls may run at a time.
	Put(ctx context.Context, key string, body []byte) error
}

// longestNamespaceID bounds the IDs that are looked up: a key cannot have more bytes.
const longestNamespaceID = 1000

// archive writes the events of the audit that DynamoDB removed because of their ttl. The
// checkpoint moves after that, so each is written at least once.
func (r *Reader) archive(ctx context.Context, s *shard, records []*aggregator.Record) error {
	if r.o.Archive == nil {
		return nil
	}
	names := make(map[string]string)
	for _, id := range aggregator.ArchivedNamespaces(records) {
		if id == "" || len(id) > longestNamespaceID {
			continue
		}
		n, err := r.namespace(ctx, id)
		if err != nil {
			return err
		}
		names[id] = n.name
	}
	objects, err := aggregator.Archive(s.id, records, names)
	if err != nil {
		return client.Unreadable(err)
	}
	return client.Parallel(len(objects), func(i int) error {
		o := objects[i]
		if err := r.o.Archive.Put(ctx, o.Key, o.Body); err != nil {
			return notArchived(o.Key, err)
		}
		r.mu.Lock()
		r.done.Objects++
		r.done.Archived += int64(o.Events)
		r.mu.Unlock()
		for n, f := range o.Faults {
			if n == maxLogged {
				break
			}
			r.log.Warn("audit event archived as it is: it cannot be read", "object", o.Key,
				"error", f)
		}
		r.log.Info("archived", "shard", s.id, "object", o.Key, "events", o.Events)
		return nil
	})
}

// notArchived returns the error of an object that was not written. It may pass, unless the
// archive says otherwise.
func notArchived(key string, err error) error {
	if _, ok := errors.AsType[*weir.Error](err); ok {
		return err
	}
	return &weir.Error{
		Code: weir.Unavailable, Field: "archive", Value: key, Reason: "was not written", Err: err,
	}
}

// moves reports whether a record moves the checkpoint because it was archived.
func (r *Reader) moves(record *aggregator.Record) bool {
	return r.o.Archive != nil && aggregator.IsArchived(record)
}
