package declared

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/joined"
	"github.com/weir-limiter/weir/limiter"
)

// apply is an apply under way.
type apply struct {
	limiter *limiter.Limiter
	target  *target
	plan    *plan
	// id is the ID of the apply's mark.
	id string
	// record is as this apply wrote it last.
	record *declare.Record
	steps  []*step
	// creators are the steps that declare an entity, by its name.
	creators map[string]*step
	// unset are the steps that have failed to set limits at a place that had none.
	unset map[*step]bool
}

func newApply(l *limiter.Limiter, t *target, p *plan) *apply {
	a := &apply{
		limiter: l, target: t, plan: p, id: rand.Text(), steps: p.steps(),
		creators: map[string]*step{}, unset: map[*step]bool{},
	}
	for _, s := range a.steps {
		if s.creates {
			a.creators[s.at.Entity] = s
		}
	}
	return a
}

// ApplyLimits implements [httpapi.LimitsAdmin].
func (l *Limits) ApplyLimits(
	ctx context.Context, in *httpapi.LimitsFile,
) (*httpapi.LimitsPlan, error) {
	t, p, err := l.plan(ctx, in)
	if err != nil {
		return nil, err
	}
	if p.out.Nothing() {
		return &p.out, nil
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	a := newApply(l.limiter, t, p)
	if err := a.claim(ctx); err != nil {
		return nil, a.stopped(ctx, asError(err))
	}
	if err := a.run(declare.WithClaim(ctx, a.id)); err != nil {
		return nil, a.stopped(ctx, err)
	}
	if a.follow(ctx); hasEnded(ctx) {
		return nil, a.stopped(ctx, ctx.Err())
	}
	if err := a.finish(ctx); err != nil {
		return nil, a.stopped(ctx, asError(err))
	}
	return &p.out, nil
}

// mostBehind bounds the names of entities whose buckets could not follow.
const mostBehind = 100

// follow brings the state of live subjects to the changed limits. The limits of an entity on one
// resource are left out, because their change has done it. An apply that continues an interrupted
// one does it for all that the file manages, because the other may not have come to it. A failure
// changes nothing for weir, which reads the configuration anyway. The answer says which entities
// have not followed, and the next apply tries again.
func (a *apply) follow(ctx context.Context) {
	changed := map[weir.Subject]bool{}
	for _, s := range a.steps {
		single := s.at.Entity != "" && s.at.Resource != weir.DefaultResource
		if s.kind == stepLimits && s.done && !single {
			changed[s.at] = true
		}
	}
	continues := a.plan.record.Apply != nil
	if len(changed) == 0 && !continues {
		return
	}
	managed := &a.record.Managed
	var subjects []weir.Subject
	err := a.plan.eachLive(ctx, a.target, func(s weir.Subject, places []weir.Subject) {
		if slices.ContainsFunc(places, func(at weir.Subject) bool {
			return changed[at] || continues && managed.Has(at)
		}) {
			subjects = append(subjects, s)
		}
	})
	if err == nil {
		err = a.target.FollowConfig(ctx, a.target.now(), subjects)
	}
	a.plan.out.Behind = behind(err)
}

// behind says which subjects have not followed; nil if there is no error.
func behind(err error) *httpapi.LimitsBehind {
	if err == nil {
		return nil
	}
	entities := map[string]bool{}
	errs := joined.Errors(err)
	reason := errs[0].Error()
	for _, one := range errs {
		if e, ok := errors.AsType[*declare.FollowError](one); ok {
			entities[e.Of.Entity] = true
		}
	}
	names := slices.AppendSeq([]string{}, maps.Keys(entities))
	slices.Sort(names)
	return &httpapi.LimitsBehind{
		Count: len(names), Names: names[:min(len(names), mostBehind)], Reason: reason,
	}
}

// run makes the steps. It returns an error only if the caller has left. A step that fails is
// tried again after the others, because they may have made room for it: a cascade can be too deep
// only until another entity has moved.
func (a *apply) run(ctx context.Context) error {
	left := a.steps
	for {
		var failed []*step
		for _, s := range left {
			if err := ctx.Err(); err != nil {
				return err
			}
			s.err = a.makeStep(ctx, s)
			a.noteUnset(s)
			if s.err == nil {
				s.done = true
				continue
			}
			if errors.Is(s.err, declare.ErrClaimLost) {
				a.abandon(s.err)
				return nil
			}
			failed = append(failed, s)
		}
		if len(failed) == 0 || len(failed) == len(left) || !slices.ContainsFunc(failed, repeatable) {
			return nil
		}
		left = failed
	}
}

// repeatable reports whether other steps may have made room for a step.
func repeatable(s *step) bool {
	return errors.Is(s.err, weir.Invalid) || errors.Is(s.err, weir.Conflict)
}

// makeStep makes one step, and renews the mark before if it is due.
func (a *apply) makeStep(ctx context.Context, s *step) error {
	if err := a.renew(ctx); err != nil {
		return err
	}
	if of := a.creators[s.at.Entity]; of != nil && of != s && of.err != nil {
		return weir.NewError(weir.Conflict, "entities."+s.at.Entity, "", "could not be declared")
	}
	if of := a.needed(s); of != nil {
		return weir.NewError(weir.Conflict, a.pathOf(s), "", "is not deleted, because "+
			a.pathOf(of)+" could not be set: calls could be left without a limit")
	}
	return s.make(ctx, a.limiter, a.plan)
}

// pathOf returns the place of a step, as a limits file names it.
func (a *apply) pathOf(s *step) string {
	if s.kind == stepDelete || len(s.changes) == 0 {
		return "entities." + s.at.Entity
	}
	return a.plan.changes[s.changes[0]].Path()
}

// noteUnset notes whether a step has failed to set limits at a place that had none.
func (a *apply) noteUnset(s *step) {
	sets := s.kind == stepLimits && len(a.plan.wanted.LimitsAt(s.at)) > 0
	if sets && s.err != nil && len(a.plan.stored.Definitions.LimitsAt(s.at)) == 0 {
		a.unset[s] = true
		return
	}
	delete(a.unset, s)
}

// needed returns a step without which a deletion could leave calls without a limit: one that has
// failed to set limits for some of the calls for which those that would be deleted are in force.
func (a *apply) needed(s *step) *step {
	if len(a.unset) == 0 {
		return nil
	}
	for _, at := range a.plan.deletedPlaces(s) {
		for _, of := range a.steps { // in order, so that the same is named each time
			if a.unset[of] && meet(at, of.at) {
				return of
			}
		}
	}
	return nil
}

// abandon notes that an apply has lost its claim: what was not made yet is not made.
func (a *apply) abandon(err error) {
	for _, s := range a.steps {
		if !s.done {
			s.err = err
		}
	}
}

// report notes in the plan which changes have failed.
func (a *apply) report() {
	out := &a.plan.out
	for _, s := range a.steps {
		for _, i := range s.changes {
			if s.err == nil {
				out.Applied++
				continue
			}
			out.Failed++
			out.Changes[i].Error = s.err.Error()
		}
	}
}
