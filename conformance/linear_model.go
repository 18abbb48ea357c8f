package conformance

import (
	"context"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// linearWorld describes the worlds of a history: what they support, and how their answers may
// differ from the model's.
type linearWorld struct {
	// kinds are the kinds of the limits. Kinds that a store does not have are replaced by buckets.
	kinds [linearLimits]weir.Kind
	// cascade is set if the children charge their parent. A store that cannot charge several
	// entities at one instant has no cascade.
	cascade bool
	// contends is set if a reservation may be denied as contended, as if it had not been made.
	contends bool
	// estimates is set if the answer to a reservation may have what was available at another
	// instant.
	estimates bool
	// servers is set if several servers answer, each of which remembers leases.
	servers bool
}

func linearWorldOf(h *Harness) linearWorld {
	w := linearWorld{
		kinds:   [linearLimits]weir.Kind{weir.Bucket, weir.Concurrency, weir.Budget, weir.Window},
		cascade: h.Traits.CascadeDepth > 0 && !h.NotAtomicAcrossEntities, contends: h.MayContend,
		estimates: h.EstimatedAvailable, servers: h.SeveralServers,
	}
	for i, k := range w.kinds {
		if !slices.Contains(h.Traits.Kinds, k) {
			w.kinds[i] = weir.Bucket
		}
	}
	return w
}

// linearState is the state of a group after some of its calls in one order. It is immutable: step
// returns a new state.
type linearState struct {
	world *linearWorld
	ids   *[linearSlots]weir.LeaseID
	model *model.Model
}

// newLinearState returns the state before the first call.
func newLinearState(w *linearWorld) (*linearState, error) {
	setup := linearSetup(w)
	m, err := OpenModel(setup, nil, nil)
	if err != nil {
		return nil, err
	}
	s := &linearState{world: w, ids: new([linearSlots]weir.LeaseID), model: m.Model}
	for i := range s.ids {
		s.ids[i] = weir.NewLeaseID(setup.Start)
	}
	return s, nil
}

// linearModel returns the model by which the checker judges a group.
func linearModel(w *linearWorld) (porcupine.Model, error) {
	initial, err := newLinearState(w)
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, output any) (bool, any) {
			return state.(*linearState).step(input.(*linearCall), output.(*linearAnswer))
		},
		Equal: func(a, b any) bool { return a.(*linearState).model.SameNow(b.(*linearState).model) },
		DescribeOperation: func(input, output any) string {
			return input.(*linearCall).String() + ": " + output.(*linearAnswer).String()
		},
	}, err
}

// step reports whether got is a right answer to a call, and returns the state after the call.
func (s *linearState) step(c *linearCall, got *linearAnswer) (bool, *linearState) {
	id := s.ids[c.slot]
	before := s.model.StateOf(id)
	if got.contended { // as if the call had not been made
		return s.world.contends && before == "", s
	}
	next := s
	// A status changes nothing, and neither does a call about a lease that has ended.
	if c.verb != "" && (before == "" || before == driver.LeaseLive) {
		next = &linearState{s.world, s.ids, s.model.CloneFor(id)}
	}
	want, judged := c.play(context.Background(), next.model, id)
	if want.code != got.code || want.denied != got.denied {
		return s.world.servers && got.code == "" && s.appliedBefore(c), next
	}
	repeats := c.verb == weir.VerbReserve && before == driver.LeaseLive
	switch {
	case want.available == got.available, repeats:
		// repeatsAgree compares the answers of repeats.
		return true, next
	case c.verb == weir.VerbReserve && s.world.estimates:
		return got.mayEstimate(judged), next
	}
	return false, next
}

// appliedBefore reports whether a call is an adjust that the lease has applied, or an earlier one.
// The server that applied it may answer it again without having noticed that another server has
// settled the lease.
func (s *linearState) appliedBefore(c *linearCall) bool {
	return c.verb == weir.VerbAdjust && int64(c.seq) <= s.model.Seq(s.ids[c.slot])
}

// mayEstimate reports whether the available units of an answer to a reservation may be those of
// another instant, when other calls had taken or settled units. Even then a limit has at most its
// capacity, less what was admitted, and a denial names a limit that did not have enough.
func (a *linearAnswer) mayEstimate(judged []weir.LimitStatus) bool {
	exceeded := false
	for i, s := range judged {
		available, most := int64(a.available[i]), s.Capacity
		if !a.denied {
			most -= s.Requested
		}
		if available > most {
			return false
		}
		exceeded = exceeded || available < s.Requested
	}
	return exceeded || !a.denied
}
