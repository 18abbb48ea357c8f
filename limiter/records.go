package limiter

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Audit yields the recorded changes of the configuration at a place, the newest first: of the
// system if at is zero, of a resource if it names no entity, otherwise of an entity, restricted to
// one resource if it names one. It begins after the event with the ID after, or with the newest if
// after is empty. The list ends at the first error. Only ctx bounds how long it takes. If the store
// is not a [driver.RecordReader], the error has code [weir.Unsupported].
func (l *Limiter) Audit(ctx context.Context, at weir.Subject, after string) iter.Seq2[weir.AuditEvent, error] {
	reader, ok := l.store.(driver.RecordReader)
	if !ok {
		return errSeq[weir.AuditEvent](weir.NewError(weir.Unsupported, "store", "",
			"does not keep an audit"))
	}
	whole := at
	if whole.Entity != "" && whole.Resource == "" {
		whole.Resource = weir.DefaultResource // any resource: levelOf then checks the entity only
	}
	if _, err := l.levelOf(whole); err != nil {
		return errSeq[weir.AuditEvent](err)
	}
	return classifySeq(reader.ReadAudit(ctx, at, after))
}

// Usage yields the recorded usage that q asks for, later windows first on each resource. q must
// name an entity or a resource. The list ends at the first error. Only ctx bounds how long it
// takes. If the store is not a [driver.RecordReader], the error has code [weir.Unsupported].
func (l *Limiter) Usage(ctx context.Context, q weir.Usage) iter.Seq2[weir.Usage, error] {
	reader, err := l.usageReader(q)
	if err != nil {
		return errSeq[weir.Usage](err)
	}
	return classifySeq(reader.ReadUsage(ctx, q))
}

// UsageTotal returns the sum of the recorded usage that q asks for. q must name a length of
// windows, because an hour is counted again in its day and its month.
func (l *Limiter) UsageTotal(ctx context.Context, q weir.Usage) (*weir.Usage, error) {
	if q.Window == "" {
		return nil, invalid("window", q.Window, "must be hourly, daily or monthly")
	}
	total := &weir.Usage{
		Entity: q.Entity, Resource: q.Resource, Window: q.Window,
		Units: map[string]int64{}, Overdrawn: map[string]int64{},
	}
	for u, err := range l.Usage(ctx, q) {
		if err != nil {
			return nil, err
		}
		if err := total.Add(&u); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func (l *Limiter) usageReader(q weir.Usage) (driver.RecordReader, error) {
	reader, ok := l.store.(driver.RecordReader)
	switch {
	case !ok:
		return nil, weir.NewError(weir.Unsupported, "store", "", "does not record usage")
	case q.Entity == "" && q.Resource == "":
		return nil, invalid("resource", "", "must be given if no entity is given")
	case q.Window != "" && q.Window != "hourly" && q.Window != "daily" && q.Window != "monthly":
		return nil, invalid("window", q.Window, "must be hourly, daily or monthly")
	case !q.End.IsZero() && !q.Start.Before(q.End):
		return nil, invalid("end", q.End.UTC().Format(time.RFC3339), "must be after the start")
	}
	if reason := identifier.CheckEntity(q.Entity, l.traits.EntitySlash); q.Entity != "" && reason != "" {
		return nil, invalid("entity", q.Entity, reason)
	}
	if reason := identifier.CheckResource(q.Resource); q.Resource != "" && reason != "" {
		return nil, invalid("resource", q.Resource, reason)
	}
	return reader, nil
}

// errSeq returns a sequence of one error.
func errSeq[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// classifySeq returns the sequence with its error classified.
func classifySeq[T any](list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range list {
			if err != nil {
				err = classify(err)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
