package dynamodb

import (
	"context"
	"iter"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// ReadAudit yields the changes at a place, the newest first, those of the Python library among
// them. What is no event's ID is no place to begin behind.
func (s *Store) ReadAudit(
	ctx context.Context, at weir.Subject, after string,
) iter.Seq2[weir.AuditEvent, error] {
	owner := auditOwner(at)
	in := partition(schema.AuditPK(s.namespace, owner), schema.SKAuditPrefix, consistent(ctx))
	in.ScanIndexForward = new(false)
	if after != "" {
		id, err := weir.ParseLeaseID(after) // a ULID as well
		if err != nil {
			return failing[weir.AuditEvent](fault(weir.Invalid, "after", after,
				"must be the ID of an event: a ULID, of 26 characters"))
		}
		in.ExclusiveStartKey = schema.AuditKey(s.namespace, owner, id.String()).Item()
	}
	return func(yield func(weir.AuditEvent, error) bool) {
		// Close waits for no reader, who may never come back from an event.
		if err := s.closing(); err != nil {
			yield(weir.AuditEvent{}, err)
			return
		}
		for page, err := range s.queryPages(ctx, in) {
			if err != nil {
				yield(weir.AuditEvent{}, err)
				return
			}
			for _, item := range page {
				e, err := readEvent(item)
				if err != nil {
					yield(e, err)
					return
				}
				if at.Entity != "" && at.Resource != "" && e.Resource != at.Resource {
					continue
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// failing is a list that is nothing but an error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

func readEvent(item schema.Item) (weir.AuditEvent, error) {
	e, err := schema.ParseAuditEvent(item)
	if err != nil {
		return weir.AuditEvent{}, unreadable(err)
	}
	at, err := schema.ParseTimestamp(e.Timestamp)
	if err != nil {
		return weir.AuditEvent{}, unreadable(err)
	}
	return weir.AuditEvent{
		ID: e.ID, At: at, Action: e.Action, Entity: e.Entity, Principal: e.Principal, Resource: e.Resource,
		Details: e.Details,
	}, nil
}
