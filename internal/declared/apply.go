package declared

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/limiter"
)

// renewAfter is the age of an apply's mark from which on the apply renews it.
const renewAfter = staleAfter / 4

// apply is an apply under way.
type apply struct {
	limiter *limiter.Limiter
	target  *target
	plan    *plan
	// record is as this apply wrote it last.
	record *declare.Record
	steps  []*step
	// followed is false if live subjects may not have the changed limits yet.
	followed bool
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
	a := &apply{limiter: l.limiter, target: t, plan: p, steps: p.steps()}
	if err := a.claim(ctx); err != nil {
		return nil, asError(err)
	}
	if err := a.run(declare.WithClaim(ctx, a.record.Apply.ID)); err != nil {
		return nil, err
	}
	a.followed = a.follow(ctx)
	if err := a.finish(ctx); err != nil {
		return nil, asError(err)
	}
	return &p.out, nil
}

// follow brings the state of live subjects to the changed limits. The limits of an entity on one
// resource are left out, because their change has done it. An apply that continues an interrupted
// one does it for all that the file manages, because the other may not have come to it. A failure
// changes nothing for weir, which reads the configuration anyway, and is told in the note; the next
// apply tries again. It reports whether all have followed.
func (a *apply) follow(ctx context.Context) bool {
	changed := map[weir.Subject]bool{}
	for _, s := range a.steps {
		single := s.at.Entity != "" && s.at.Resource != weir.DefaultResource
		if s.kind == stepLimits && s.done && !single {
			changed[s.at] = true
		}
	}
	continues := a.plan.record.Apply != nil
	if len(changed) == 0 && !continues {
		return true
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
	if err != nil {
		a.plan.out.Note = "the limits are set, but not all buckets in use have them yet, and " +
			"programs with the Python library go by the buckets: apply the file again: " + err.Error()
	}
	return err == nil
}

// claim puts the mark of this apply into the record. The managed set becomes that of before and
// that of the file, so that an apply that is interrupted forgets no place.
func (a *apply) claim(ctx context.Context) error {
	read, now := a.plan.record, a.target.now()
	d := a.plan.claimed(a.steps)
	d.Apply = &declare.Mark{ID: rand.Text(), By: weir.PrincipalOf(ctx), At: now}
	err := a.target.WriteDeclared(ctx, now, read, &d)
	if errors.Is(err, declare.ErrClaimLost) {
		return a.lost(ctx, err)
	}
	a.record = &d
	return err
}

// lost returns the error of an apply that was not the first to claim the record. It says who was.
func (a *apply) lost(ctx context.Context, err error) error {
	now, readErr := a.target.ReadDeclared(ctx)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	reason := "somebody else has applied a file meanwhile: look at weir limits plan, and repeat"
	switch {
	case now.Apply != nil:
		reason = underWay(now.Apply).Reason
	case now.AppliedBy != "":
		reason = fmt.Sprintf("%s has applied a file meanwhile, at %s: "+
			"look at weir limits plan, and repeat",
			now.AppliedBy, now.AppliedAt.UTC().Format(time.RFC3339))
	}
	return &weir.Error{
		Code: weir.Conflict, Field: "limits", Reason: notApplied + reason, Err: declare.ErrClaimLost,
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
			if s.err = a.makeStep(ctx, s); s.err == nil {
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
	if now := a.target.now(); now.Sub(a.record.Apply.At) >= renewAfter {
		d := *a.record
		mark := *d.Apply
		mark.At = now
		d.Apply = &mark
		if err := a.target.WriteDeclared(ctx, now, a.record, &d); err != nil {
			return err
		}
		a.record = &d
	}
	for _, of := range a.steps {
		if of.creates && of.err != nil && of != s && of.at.Entity == s.at.Entity {
			return weir.NewError(weir.Conflict, "entities."+s.at.Entity, "", "could not be declared")
		}
	}
	return s.make(ctx, a.limiter, a.plan)
}

// abandon notes that an apply has lost its claim: what was not made yet is not made.
func (a *apply) abandon(err error) {
	for _, s := range a.steps {
		if !s.done {
			s.err = err
		}
	}
}

// finish writes the new set and removes the mark, unless the claim was lost.
func (a *apply) finish(ctx context.Context) error {
	a.report()
	lost := func(s *step) bool { return errors.Is(s.err, declare.ErrClaimLost) }
	if slices.ContainsFunc(a.steps, lost) {
		return nil
	}
	d := *a.record
	d.Managed = a.plan.managed(a.steps)
	d.AppliedAt, d.AppliedBy = a.target.now(), d.Apply.By
	d.Apply, d.Again = nil, nil
	if !a.followed { // a mark that is too old already, so that the next apply continues
		d.Apply = &declare.Mark{ID: rand.Text(), By: a.record.Apply.By, At: time.UnixMilli(0)}
	}
	for _, s := range a.steps {
		if s.err != nil && (s.kind == stepEntity || s.kind == stepDelete) {
			d.Again = append(d.Again, s.at.Entity)
		}
	}
	slices.Sort(d.Again)
	d.Again = slices.Compact(d.Again)
	return a.target.WriteDeclared(ctx, d.AppliedAt, a.record, &d)
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
