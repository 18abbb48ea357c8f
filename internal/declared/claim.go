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
)

const (
	// renewAfter is the age of an apply's mark from which on the apply renews it.
	renewAfter = staleAfter / 4
	// releaseTimeout bounds the writes with which an apply ends whose caller has left.
	releaseTimeout = 10 * time.Second
)

// claim puts the mark of this apply into the record. The managed set becomes that of before and
// that of the file, so that an apply that is interrupted forgets no place.
func (a *apply) claim(ctx context.Context) error {
	read, now := a.plan.record, a.target.now()
	d := a.plan.claimed(a.steps)
	d.Apply = &declare.Mark{ID: a.id, By: weir.PrincipalOf(ctx), At: now}
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

// renew writes a new time to the mark of this apply if it is due.
func (a *apply) renew(ctx context.Context) error {
	now := a.target.now()
	if now.Sub(a.record.Apply.At) < renewAfter {
		return nil
	}
	d := *a.record
	mark := *d.Apply
	mark.At = now
	d.Apply = &mark
	if err := a.target.WriteDeclared(ctx, now, a.record, &d); err != nil {
		return err
	}
	a.record = &d
	return nil
}

// leftMark returns a mark that is too old already. It refuses nobody, and the next apply continues.
func leftMark(by string) *declare.Mark {
	return &declare.Mark{ID: rand.Text(), By: by, At: time.UnixMilli(0)}
}

// hasEnded reports whether the caller has left.
func hasEnded(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// stopped returns the error of an apply that ends early. If the caller has left, it removes the
// apply's mark first, so that another apply can begin at once, and says what was done.
func (a *apply) stopped(ctx context.Context, err error) error {
	if !hasEnded(ctx) {
		return err
	}
	made, left := 0, 0
	for _, s := range a.steps {
		if s.done {
			made += len(s.changes)
		} else {
			left += len(s.changes)
		}
	}
	reason := fmt.Sprintf("the apply was stopped: changes made: %d, left: %d; apply the file again, and "+
		"it goes on", made, left)
	if err := a.release(ctx); err != nil {
		until := a.target.now().Add(staleAfter).UTC().Format(time.RFC3339)
		reason += fmt.Sprintf("; its mark could not be removed (%v), so that it needs --take-over until %s",
			err, until)
	}
	return &weir.Error{Code: weir.Unavailable, Field: "limits", Reason: reason, Err: ctx.Err()}
}

// release puts a mark that is too old in place of that of this apply, if that is still there. The
// record is read again, because the outcome of the last write may be unknown.
func (a *apply) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	read, err := a.target.ReadDeclared(ctx)
	if err != nil || read.Apply == nil || read.Apply.ID != a.id {
		return err
	}
	d := *read
	d.Apply = leftMark(read.Apply.By)
	err = a.target.WriteDeclared(ctx, a.target.now(), read, &d)
	if errors.Is(err, declare.ErrClaimLost) {
		return nil // somebody else has taken over
	}
	return err
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
	if a.plan.out.Behind != nil {
		d.Apply = leftMark(a.record.Apply.By)
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
