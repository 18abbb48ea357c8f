package broken

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// remembered is what applied to subjects when somebody asked before.
type remembered struct {
	mu sync.Mutex
	of map[weir.Subject]*weir.Resolved
}

// before returns what applied the last time, or now if nobody has asked yet, and remembers what
// applies if it is to replace that.
func (m *remembered) before(s weir.Subject, now *weir.Resolved, replace bool) *weir.Resolved {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.of[s]
	if was == nil || replace {
		if m.of == nil {
			m.of = map[weir.Subject]*weir.Resolved{}
		}
		m.of[s] = now
	}
	if was == nil {
		return now
	}
	return was
}

// firstForGood judges by the limits that a subject had when it was first seen, as one that goes
// by its items alone.
func firstForGood(s *store) {
	var first remembered
	resolving(func(of weir.Subject, r *weir.Resolved) *weir.Resolved {
		return first.before(of, r, false)
	})(s)
}

// takenByBefore takes by the limits that a subject had the last time, and then again by those
// that apply, if they are others, without giving the first back.
func takenByBefore(s *store) {
	var last remembered
	s.reserve = func(
		ctx context.Context, now time.Time, r *weir.Reservation,
	) (*weir.Outcome, error) {
		old := map[weir.Subject]*weir.Resolved{}
		for _, c := range r.Charges {
			of := weir.Subject{Entity: c.Entity, Resource: c.Resource}
			resolved, err := r.Resolve(ctx, of, weir.Usual)
			if err != nil {
				return nil, err
			}
			was := last.before(of, resolved, true)
			if !slices.EqualFunc(was.Limits, resolved.Limits, weir.Limit.Same) {
				old[of] = was
			}
		}
		if len(old) > 0 {
			by := *r
			by.ID = weir.NewLeaseID(now)
			by.Resolve = func(
				ctx context.Context, of weir.Subject, m weir.ResolveMode,
			) (*weir.Resolved, error) {
				if was := old[of]; was != nil {
					return was, nil
				}
				return r.Resolve(ctx, of, m)
			}
			_, _ = s.right.Reserve(ctx, now, &by)
		}
		return s.right.Reserve(ctx, now, r)
	}
}

// anyParent charges parents that nobody has declared.
func anyParent(s *store) {
	s.reserve = func(
		ctx context.Context, now time.Time, r *weir.Reservation,
	) (*weir.Outcome, error) {
		r.UndeclaredParents = true
		return s.right.Reserve(ctx, now, r)
	}
}
