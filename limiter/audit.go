package limiter

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Audit returns a page of the recorded changes of the configuration, the newest first. If the store
// is not a [driver.AuditReader], the error has code [weir.Unsupported]. Only ctx bounds how long it
// takes.
func (l *Limiter) Audit(ctx context.Context, q *weir.AuditQuery) (*weir.AuditPage, error) {
	reader, ok := l.store.(driver.AuditReader)
	if !ok {
		return nil, weir.NewError(weir.Unsupported, "store", "", "does not keep an audit")
	}
	checked, err := l.checkAuditQuery(q)
	if err != nil {
		return nil, err
	}
	page := &weir.AuditPage{}
	for e, err := range reader.ReadAudit(ctx, checked) {
		if err != nil {
			return nil, classify(err)
		}
		if len(page.Events) == checked.Size {
			page.Next = page.Events[checked.Size-1].ID
			break
		}
		page.Events = append(page.Events, e)
	}
	return page, nil
}

// checkAuditQuery returns the query with its defaults.
func (l *Limiter) checkAuditQuery(in *weir.AuditQuery) (*weir.AuditQuery, error) {
	q := &weir.AuditQuery{}
	if in != nil {
		*q = *in
	}
	whole := q.At
	if whole.Entity != "" && whole.Resource == "" {
		whole.Resource = weir.DefaultResource // any resource: levelOf then checks the entity only
	}
	if _, err := l.levelOf(whole); err != nil {
		return nil, err
	}
	if _, err := weir.ParseLeaseID(q.After); q.After != "" && err != nil { // events have ULIDs too
		return nil, invalid("after", q.After, "must be the ID of an event: a ULID, of 26 characters")
	}
	if err := checkBounds(q.From, q.To); err != nil {
		return nil, err
	}
	var err error
	q.Size, err = pageSize(q.Size)
	return q, err
}
