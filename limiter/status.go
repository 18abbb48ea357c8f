package limiter

import (
	"context"
	"fmt"
	"iter"
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
	resources := []string{resource}
	if resource == "" {
		var err error
		if resources, err = l.resourcesOf(storeCtx, now, entity); err != nil {
			return nil, err
		}
	} else if reason := identifier.CheckResource(resource); reason != "" {
		return nil, invalid("resource", resource, reason)
	}
	of := make([]weir.Subject, len(resources))
	for i, name := range resources {
		of[i] = weir.Subject{Entity: entity, Resource: name}
	}
	statuses, err := l.status(storeCtx, now, of, true)
	if err != nil {
		return nil, err
	}
	if len(statuses) == 0 && resource != "" {
		return nil, weir.NewError(weir.NoLimits, "entity", entity,
			fmt.Sprintf("no limits are configured for it on resource %q", clip.Text(resource)))
	}
	return statuses, nil
}

// resourcesOf returns, in order, the resources on which an entity or an ancestor that it charges
// has limits of its own or something in use.
func (l *Limiter) resourcesOf(ctx context.Context, now time.Time, entity string) ([]string, error) {
	lister, ok := l.store.(driver.SubjectLister)
	if !ok {
		return nil, weir.NewError(weir.Unsupported, "resource", "",
			"must be given: this store cannot list them")
	}
	var all []string
	var err error
	// An entity's parent and cascade are the same on every resource, known or not.
	for at := range l.chain(ctx, weir.Subject{Entity: entity, Resource: "any"}, &err) {
		names, err := lister.Resources(ctx, now, at.Entity)
		if err != nil {
			return nil, classify(err)
		}
		all = append(all, names...)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// maxResolved bounds the number of subjects that one status resolves at the same time.
const maxResolved = 16

// status returns the statuses of the limits that apply to the subjects; with ancestors, each is
// followed by the ancestors that it charges.
func (l *Limiter) status(
	ctx context.Context, now time.Time, of []weir.Subject, ancestors bool,
) ([]weir.LimitStatus, error) {
	judged, err := l.judged(ctx, of, ancestors)
	if err != nil {
		return nil, err
	}
	statuses, err := l.store.Status(ctx, now, judged)
	if err != nil {
		return nil, classify(err)
	}
	return statuses, nil
}

// judged resolves the subjects, with the ancestors that they charge if those are wanted. It resolves
// several at a time if that needs I/O.
func (l *Limiter) judged(
	ctx context.Context, of []weir.Subject, ancestors bool,
) ([]driver.Judged, error) {
	judged, errs := make([][]driver.Judged, len(of)), make([]error, len(of))
	resolve := func(i int) {
		for at, r := range l.chain(ctx, of[i], &errs[i]) {
			judged[i] = append(judged[i], r.judge(at))
			if !ancestors {
				break
			}
		}
	}
	if len(of) == 1 || l.traits.Local {
		for i := range of {
			resolve(i)
		}
		return slices.Concat(judged...), first(errs)
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
	return slices.Concat(judged...), first(errs)
}

// chain yields what applies to a subject and to each ancestor that it charges. It sets err if one
// cannot be resolved or if there are too many.
func (l *Limiter) chain(
	ctx context.Context, of weir.Subject, err *error,
) iter.Seq2[weir.Subject, *resolution] {
	return func(yield func(weir.Subject, *resolution) bool) {
		at := of
		for n := 0; ; n++ {
			var r *resolution
			if r, *err = l.resolveSubject(ctx, at, usual); *err != nil || !yield(at, r) || r.parent == "" {
				return
			}
			if n == l.options.CascadeDepth {
				*err = checkChain(ctx, l.resolveSubject, of, n)
				return
			}
			at.Entity = r.parent
		}
	}
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
	var all []weir.Explanation
	declared := !l.options.DeclaredResources
	of := weir.Subject{Entity: entity, Resource: resource}
	var err error
	for at, r := range l.chain(storeCtx, of, &err) {
		all = append(all, r.explain(at))
		declared = declared || r.declaresResource()
	}
	if err != nil {
		return nil, err
	}
	if !declared {
		return nil, undeclaredResource(of)
	}
	for i := range all[1:] {
		all[i].Parent = &all[i+1]
	}
	first := &all[0]
	first.OnUnavailable, first.OnUnavailableFrom = l.onUnavailable()
	return first, nil
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
