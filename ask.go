package weir

import (
	"context"
	"fmt"
	"slices"
)

// Status reports an entity's limits; see [Service].
func (l *Limiter) Status(ctx context.Context, entity, resource string) ([]LimitStatus, error) {
	if reason := checkEntity(entity, l.traits.EntitySlash); reason != "" {
		return nil, invalid("entity", entity, reason)
	}
	now := l.options.Now()
	l.leases.clock(now)
	bound := l.storeContext
	if resource == "" { // as many as the entity uses
		bound = l.administerContext
	}
	storeCtx, cancel := bound(ctx)
	defer cancel()
	var of []Subject
	if resource != "" {
		if reason := checkResource(resource); reason != "" {
			return nil, invalid("resource", resource, reason)
		}
		of = []Subject{{entity, resource}}
	} else {
		lister, ok := l.backend.(SubjectLister)
		if !ok {
			return nil, fault(Unsupported, "resource", "", "must be given: this store cannot list them")
		}
		names, err := lister.Resources(storeCtx, now, entity)
		if err != nil {
			return nil, classify(err)
		}
		for _, name := range names {
			of = append(of, Subject{entity, name})
		}
	}
	statuses, err := l.backend.Status(storeCtx, now, of, l.resolve)
	if err != nil {
		return nil, classify(err)
	}
	if len(statuses) == 0 && resource != "" {
		return nil, fault(NoLimits, "entity", entity, fmt.Sprintf("nothing is configured for resource %q", shorten(resource)))
	}
	return statuses, nil
}

// Explain says which limits apply to an (entity, resource), and which ones they hide; see
// [Service].
func (l *Limiter) Explain(ctx context.Context, entity, resource string) (*Explanation, error) {
	if err := checkSubject(entity, resource, l.traits.EntitySlash); err != nil {
		return nil, err
	}
	l.leases.clock(l.options.Now())
	storeCtx, cancel := l.storeContext(ctx)
	defer cancel()
	first := &Explanation{}
	for at, e, depth := entity, first, 0; ; depth++ {
		r, err := l.resolve(storeCtx, Subject{at, resource}, Usual)
		if err != nil {
			return nil, err
		}
		*e = r.explain(Subject{at, resource})
		if r.Parent == "" {
			return first, nil
		}
		if depth == l.options.CascadeDepth {
			return nil, tooLong(storeCtx, l.resolve, Subject{entity, resource}, depth)
		}
		e.Parent = &Explanation{}
		at, e = r.Parent, e.Parent
	}
}

// explain copies what applies to a subject: the caller may do with it what it likes.
func (r *Resolved) explain(s Subject) Explanation {
	e := Explanation{
		Entity: s.Entity, Resource: s.Resource, Level: r.Level, Limits: slices.Clone(r.Limits),
	}
	for _, h := range r.Hidden {
		e.Hidden = append(e.Hidden, LevelLimits{h.Level, slices.Clone(h.Limits)})
	}
	return e
}
