package limiter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Status reports an entity's limits; see [weir.Service].
func (l *Limiter) Status(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	if reason := identifier.CheckEntity(entity); reason != "" {
		return nil, invalid("entity", entity, reason)
	}
	now := l.options.Now()
	l.leases.clock(now)
	bound := l.storeContext
	if resource == "" { // the number of resources is not bounded
		bound = l.administerContext
	}
	storeCtx, cancel := bound(ctx)
	defer cancel()
	var of []weir.Subject
	if resource != "" {
		if reason := identifier.CheckResource(resource); reason != "" {
			return nil, invalid("resource", resource, reason)
		}
		of = []weir.Subject{{Entity: entity, Resource: resource}}
	} else {
		lister, ok := l.store.(driver.SubjectLister)
		if !ok {
			return nil, weir.NewError(weir.Unsupported, "resource", "", "must be given: this store cannot list them")
		}
		names, err := lister.Resources(storeCtx, now, entity)
		if err != nil {
			return nil, classify(err)
		}
		for _, name := range names {
			of = append(of, weir.Subject{Entity: entity, Resource: name})
		}
	}
	statuses, err := l.status(storeCtx, now, of)
	if err != nil {
		return nil, err
	}
	if len(statuses) == 0 && resource != "" {
		return nil, weir.NewError(weir.NoLimits, "entity", entity,
			fmt.Sprintf("no limits are configured for it on resource %q", clip.Text(resource)))
	}
	return statuses, nil
}

// maxResolved bounds the number of subjects that one status resolves at the same time.
const maxResolved = 16

// status returns the statuses of the limits that apply to the subjects.
func (l *Limiter) status(ctx context.Context, now time.Time, of []weir.Subject) ([]weir.LimitStatus, error) {
	judged, err := l.judged(ctx, of)
	if err != nil {
		return nil, err
	}
	statuses, err := l.store.Status(ctx, now, judged)
	if err != nil {
		return nil, classify(err)
	}
	return statuses, nil
}

// judged resolves the subjects, several at a time if that needs I/O.
func (l *Limiter) judged(ctx context.Context, of []weir.Subject) ([]driver.Judged, error) {
	judged, errs := make([]driver.Judged, len(of)), make([]error, len(of))
	resolve := func(i int) {
		var r *resolution
		if r, errs[i] = l.resolveSubject(ctx, of[i], usual); errs[i] == nil {
			judged[i] = r.judge(of[i])
		}
	}
	if len(of) == 1 || l.traits.Local {
		for i := range of {
			resolve(i)
		}
		return judged, first(errs)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(of), maxResolved) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(of)); i = next.Add(1) - 1 {
				resolve(int(i))
			}
		})
	}
	all.Wait()
	return judged, first(errs)
}

// judge returns the subject with the limits that apply to it.
func (r *resolution) judge(of weir.Subject) driver.Judged {
	return driver.Judged{Subject: of, Level: r.level, Limits: r.limits, Parent: r.parent, Version: r.version}
}

// first returns the first error, or nil.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Explain returns the limits that apply to an entity on a resource, the ones that they hide, and the
// policy for an unavailable store; see [weir.Service].
func (l *Limiter) Explain(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
	if err := checkSubject(entity, resource); err != nil {
		return nil, err
	}
	l.leases.clock(l.options.Now())
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	first := &weir.Explanation{}
	for at, e, depth := entity, first, 0; ; depth++ {
		r, err := l.resolveSubject(storeCtx, weir.Subject{Entity: at, Resource: resource}, usual)
		if err != nil {
			return nil, err
		}
		*e = r.explain(weir.Subject{Entity: at, Resource: resource})
		if r.parent == "" {
			first.OnUnavailable, first.OnUnavailableFrom = l.onUnavailable()
			return first, nil
		}
		if depth == l.options.CascadeDepth {
			return nil, checkChain(storeCtx, l.resolveSubject, weir.Subject{Entity: entity, Resource: resource}, depth)
		}
		e.Parent = &weir.Explanation{}
		at, e = r.parent, e.Parent
	}
}

// explain returns a copy of what applies to a subject, which the caller may change.
func (r *resolution) explain(s weir.Subject) weir.Explanation {
	e := weir.Explanation{
		Entity: s.Entity, Resource: s.Resource, Level: r.level, Limits: slices.Clone(r.limits),
	}
	for _, h := range r.hidden {
		e.Hidden = append(e.Hidden, weir.LevelLimits{Level: h.Level, Limits: slices.Clone(h.Limits)})
	}
	return e
}
