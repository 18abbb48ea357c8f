package broken

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// earlierResolutions remembers what was last asked of each subject.
type earlierResolutions struct {
	mu sync.Mutex
	of map[weir.Subject][]*driver.Take
}

// before returns the takes that a plan's subjects had the last time, with the parts of this time;
// for a limit without any it returns the plan's own. other reports whether the two differ. If
// replace is set, it remembers the plan's takes in the place of the earlier ones.
func (m *earlierResolutions) before(p *driver.Plan, replace bool) (takes []*driver.Take, other bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[weir.Subject][]*driver.Take{}
	}
	for _, t := range p.Clone().Takes {
		was := m.of[t.Subject]
		if j := slices.IndexFunc(was, func(w *driver.Take) bool { return w.Limit.Name == t.Limit.Name }); j >= 0 {
			if old := *was[j]; !old.Limit.Same(*t.Limit) {
				old.Parts, other = t.Parts, true
				takes = append(takes, &old)
				if replace {
					was[j] = t
				}
				continue
			}
		} else {
			m.of[t.Subject] = append(was, t)
		}
		takes = append(takes, t)
	}
	return takes, other
}

// firstForGood judges by the limits that a subject had when it was first seen, like a store that
// uses only its own items.
func firstForGood(s *wrongStore) {
	var first earlierResolutions
	planning(func(p *driver.Plan) []*driver.Take {
		takes, _ := first.before(p, false)
		return takes
	})(s)
}

// takenByBefore takes units under the limits that a subject had the last time. If other limits
// apply now, it takes again under these, and does not give the first units back.
func takenByBefore(s *wrongStore) {
	var last earlierResolutions
	s.reserve = func(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
		if takes, other := last.before(p, true); other {
			by := *p
			by.ID, by.Takes = weir.NewLeaseID(now), takes
			_ = s.fullStore.Reserve(ctx, now, &by, by.Outcome())
		}
		return s.fullStore.Reserve(ctx, now, p, out)
	}
}
