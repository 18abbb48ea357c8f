package weir

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir/internal/identifier"
)

// recordReader is a backend that keeps records of who changed its configuration and of how much was
// used. Both lists are read a page at a time while they are ranged over, and end at the first
// error.
type recordReader interface {
	// ReadAudit yields what [Limiter.Audit] does.
	ReadAudit(ctx context.Context, at Subject, after string) iter.Seq2[AuditEvent, error]
	// ReadUsage yields what [Limiter.Usage] does; q has been checked.
	ReadUsage(ctx context.Context, q Usage) iter.Seq2[Usage, error]
}

// AuditEvent is the record of one change of the configuration.
type AuditEvent struct {
	// ID is a ULID; a later event has a greater one.
	ID string
	// At is when it happened, to the second.
	At time.Time
	// Action says what: "entity_created", "entity_deleted", "entity_parent_changed", "limits_set",
	// "limits_deleted", or what another program on the same store calls its own.
	Action string
	// Entity is whom it concerns; "$SYSTEM" or "$RESOURCE:" and a name where that is nobody.
	Entity string
	// Principal is who did it; empty if nobody knows.
	Principal string
	// Resource is the resource that it concerns; empty if none.
	Resource string
	// Details are the action's own: strings, bools, int64s, json.Numbers, nil, and maps and
	// slices of them.
	Details map[string]any
}

// Usage is what was counted on one (entity, resource) in one window of time, or the sum of several
// windows. As a question it says which ones are meant.
type Usage struct {
	// Entity and Resource are where it was used. In a question: empty for any.
	Entity   string
	Resource string
	// Window is "hourly", "daily" or "monthly". In a question: empty for any.
	Window string
	// Start is when the window began and End when it ended: the first instant after it. In a question:
	// windows that begin at Start or later, and before End; zero for no bound.
	Start, End time.Time
	// Events is how many changes of limits were counted.
	Events int64
	// Units are what was used, by limit.
	Units map[string]int64
	// Overdrawn is how often a limit that does not deny was left in debt, by limit.
	Overdrawn map[string]int64
	// Windows is how many windows are summed up: 1 in a record.
	Windows int
}

// Audit yields the recorded changes at a place, the newest first: the system's where the subject is
// zero, a resource's where it has no entity, an entity's otherwise, there only those on the
// resource if one is named. after is the ID of the event to begin behind; empty for the newest. The
// list ends at the first error; the context alone bounds how long it may take. A store that keeps
// none (a method ReadAudit with these arguments) answers with code [Unsupported].
func (l *Limiter) Audit(ctx context.Context, at Subject, after string) iter.Seq2[AuditEvent, error] {
	reader, ok := l.backend.(recordReader)
	if !ok {
		return errSeq[AuditEvent](fault(Unsupported, "store", "", "keeps no audit"))
	}
	whole := at
	if whole.Entity != "" && whole.Resource == "" {
		whole.Resource = DefaultResource // any: only the entity is to be checked
	}
	if _, err := l.levelOf(whole); err != nil {
		return errSeq[AuditEvent](err)
	}
	return classifySeq(reader.ReadAudit(ctx, at, after))
}

// Usage yields the recorded usage that q asks for, later windows first on each resource. Where q
// names no entity, it must name a resource. The list ends at the first error; the context alone
// bounds how long it may take. A store that keeps none (a method ReadUsage with these arguments)
// answers with code [Unsupported].
func (l *Limiter) Usage(ctx context.Context, q Usage) iter.Seq2[Usage, error] {
	reader, err := l.usageReader(q)
	if err != nil {
		return errSeq[Usage](err)
	}
	return classifySeq(reader.ReadUsage(ctx, q))
}

// UsageTotal sums the recorded usage that q asks for. Windows of different lengths would count
// twice, so q must name one.
func (l *Limiter) UsageTotal(ctx context.Context, q Usage) (*Usage, error) {
	if q.Window == "" {
		return nil, invalid("window", q.Window, "must be hourly, daily or monthly")
	}
	total := &Usage{
		Entity: q.Entity, Resource: q.Resource, Window: q.Window,
		Units: map[string]int64{}, Overdrawn: map[string]int64{},
	}
	for u, err := range l.Usage(ctx, q) {
		if err != nil {
			return nil, err
		}
		if err := total.add(&u); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// add counts another record in.
func (u *Usage) add(o *Usage) error {
	if u.Windows == 0 || o.Start.Before(u.Start) {
		u.Start = o.Start
	}
	if o.End.After(u.End) {
		u.End = o.End
	}
	u.Windows += o.Windows
	fits := true
	sum := func(a, b int64) int64 {
		c := a + b
		fits = fits && (c > a) == (b > 0)
		return c
	}
	u.Events = sum(u.Events, o.Events)
	for name, n := range o.Units {
		u.Units[name] = sum(u.Units[name], n)
	}
	for name, n := range o.Overdrawn {
		u.Overdrawn[name] = sum(u.Overdrawn[name], n)
	}
	if !fits {
		return fault(Unsupported, "usage", "", "adds up to more than 64 bits hold: ask for less time")
	}
	return nil
}

func (l *Limiter) usageReader(q Usage) (recordReader, error) {
	reader, ok := l.backend.(recordReader)
	switch {
	case !ok:
		return nil, fault(Unsupported, "store", "", "keeps no usage")
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

// classifySeq is a list whose error is an [*Error].
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
