package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
)

// planSource says how much a plan may rely on what is known.
type planSource int

const (
	// fromCache writes before the configuration has been read if it is not at hand.
	fromCache planSource = iota
	// fromRead plans by the configuration as the engine has it, or reads it first.
	fromRead
	// fromConsistentRead reads it again, because what the engine had was out of date.
	fromConsistentRead
	fromSecondRead
	// fromThirdRead is the last: a configuration that changes that often has to wait.
	fromThirdRead
)

// plan plans a reservation by the configuration.
func (s *Store) plan(
	ctx context.Context, now time.Time, r *weir.Reservation, x *resolution, how planSource,
) (*reserveOp, error) {
	if how == fromCache && s.canReserveUnplanned(ctx, r) {
		if op := s.planFromItems(ctx, now, r, x); op != nil {
			return op, nil
		}
	}
	for _, c := range r.Charges {
		of := weir.Subject{Entity: c.Entity, Resource: c.Resource}
		if how < fromConsistentRead && !s.engineStale(ctx, r.Resolve, of) {
			continue
		}
		if err := s.rereadConfig(ctx, r.Resolve, of); err != nil {
			return nil, err
		}
	}
	made, err := x.makePlan(ctx)
	if err != nil {
		return nil, err
	}
	op := &reserveOp{
		now: now.UnixMilli(), at: wholeMS(now), number: x.number, plan: made, out: made.Outcome(),
		resolution: x,
	}
	op.out.At = op.at
	for i := range made.Takes {
		t := &made.Takes[i]
		milli, err := milliOf(t)
		if err != nil {
			op.release()
			return nil, err
		}
		ic := op.chargeFor(s, t.Subject)
		ic.takes = append(ic.takes, bucketitem.Take{
			Name: t.Limit.Name, Milli: milli, BelowCapacity: (t.Limit.Capacity - t.Ceiling) * 1000,
			Limit: t.Limit, Holding: i,
		})
	}
	for _, ic := range op.charges {
		f := x.of(ic.state.Subject)
		if f == nil { // of a plan that was made before
			resolved, err := r.Resolve(ctx, ic.state.Subject, weir.Usual)
			if err != nil {
				op.release()
				return nil, err
			}
			x.keep(found{ic.state.Subject, resolved, 0})
			f = x.of(ic.state.Subject)
		}
		ic.resolved = f.resolved
		if f.resolved.Level == "" { // limits that the request brought
			ic.resolved = &weir.Resolved{
				Level: weir.LevelRequest, Limits: r.Brought, Parent: f.resolved.Parent,
			}
		}
		ic.state.MarkVerified(f.changes, ic.resolved)
	}
	return op, nil
}

// engineStale reports whether the engine keeps a configuration that this process has changed
// since.
func (s *Store) engineStale(ctx context.Context, resolve weir.Resolver, of weir.Subject) bool {
	if !s.buckets.ConfigStale(of) {
		return false
	}
	old, err := resolve(ctx, of, weir.Cached)
	return err == nil && old != nil
}

// rereadConfig has the engine read a subject's configuration and its parent's again, consistently.
func (s *Store) rereadConfig(ctx context.Context, resolve weir.Resolver, of weir.Subject) error {
	for range 2 { // the subject, and whom it cascades to
		r, err := resolve(config.WithConsistent(ctx), of, weir.Fresh)
		if err != nil {
			return err
		}
		if r.Parent == "" {
			return nil
		}
		of.Entity = r.Parent
	}
	return nil
}

// milliOf returns a take's cost in milli-units.
func milliOf(t *weir.Take) (int64, error) {
	cost := t.Cost()
	if cost > t.Limit.Capacity {
		return 0, client.Fault(weir.NeverSatisfiable, "costs."+t.Limit.Name, "", "is more than can be counted")
	}
	return cost * 1000, nil
}

// resolution resolves the limits of subjects for one reservation. It keeps what it has found, so
// that the whole reservation uses one state of the configuration, and reads nothing twice even if
// the engine has no cache. It belongs to the goroutine of the reservation.
type resolution struct {
	store *Store
	ask   weir.Resolver // the limiter's
	found []found
	// number is the reservation's, however often it is planned.
	number uint64
	// makePlan plans the reservation by the resolution.
	makePlan func(context.Context) (*weir.Plan, error)
}

// found is what applies to a subject.
type found struct {
	subject  weir.Subject
	resolved *weir.Resolved
	// changes is the number of this process's last change of the configuration when that was asked.
	changes uint64
}

// resolve is the [weir.Resolver] of the reservation.
func (x *resolution) resolve(
	ctx context.Context, of weir.Subject, mode weir.ResolveMode,
) (*weir.Resolved, error) {
	if mode != weir.Fresh {
		if f := x.of(of); f != nil {
			return f.resolved, nil
		}
	}
	changes := x.store.buckets.ConfigChanges.Latest()
	first := mode
	if mode == weir.Usual {
		first = weir.Cached
	}
	r, err := x.ask(ctx, of, first)
	if err == nil && r == nil && mode == weir.Usual {
		p := x.store.buckets.Subject(of)
		defer p.Release()
		reading, _ := p.StartRead(ctx, x.ask)
		changes = reading.Changes
		r, err = reading.Wait(ctx)
	}
	if err != nil || r == nil {
		return nil, err
	}
	x.keep(found{of, r, changes})
	return r, nil
}

// keep replaces what was found for a subject.
func (x *resolution) keep(f found) {
	if was := x.of(f.subject); was != nil {
		*was = f
		return
	}
	x.found = append(x.found, f)
}

// of returns what was found for a subject, or nil.
func (x *resolution) of(s weir.Subject) *found {
	for i := range x.found {
		if x.found[i].subject == s {
			return &x.found[i]
		}
	}
	return nil
}
