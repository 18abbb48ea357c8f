package limiter

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Audit yields the recorded changes at a place, the newest first: the system's where the subject is
// zero, a resource's where it has no entity, an entity's otherwise, there only those on the
// resource if one is named. after is the ID of the event to begin behind; empty for the newest. The
// list ends at the first error; the context alone bounds how long it may take. A store that keeps
// none (a method ReadAudit with these arguments) answers with code [weir.Unsupported].
func (l *Limiter) Audit(ctx context.Context, at weir.Subject, after string) iter.Seq2[weir.AuditEvent, error] {
	reader, ok := l.store.(driver.RecordReader)
	if !ok {
		return errSeq[weir.AuditEvent](weir.NewError(weir.Unsupported, "store", "", "keeps no audit"))
	}
	whole := at
	if whole.Entity != "" && whole.Resource == "" {
		whole.Resource = weir.DefaultResource // any: only the entity is to be checked
	}
	if _, err := l.levelOf(whole); err != nil {
		return errSeq[weir.AuditEvent](err)
	}
	return classifySeq(reader.ReadAudit(ctx, at, after))
}

// Usage yields the recorded usage that q asks for, later windows first on each resource. Where q
// names no entity, it must name a resource. The list ends at the first error; the context alone
// bounds how long it may take. A store that keeps none (a method ReadUsage with these arguments)
// answers with code [weir.Unsupported].
func (l *Limiter) Usage(ctx context.Context, q weir.Usage) iter.Seq2[weir.Usage, error] {
	reader, err := l.usageReader(q)
	if err != nil {
		return errSeq[weir.Usage](err)
	}
	return classifySeq(reader.ReadUsage(ctx, q))
}

// UsageTotal sums the recorded usage that q asks for. Windows of different lengths would count
// twice, so q must name one.
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
		return nil, weir.NewError(weir.Unsupported, "store", "", "keeps no usage")
	case q.Entity == "" && q.Resource == "":
		return nil, invalid("resource", "", "must be given where no entity is")
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

// errSeq is a list that is nothing but an error.
func errSeq[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// classifySeq is a list whose error is an [*weir.Error].
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
