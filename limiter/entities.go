package limiter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Bounds of a page of a list.
const (
	defaultPage = 100
	maxPage     = 1000
)

// Entity returns what is configured for an entity, or an error with code [weir.NotFound] if it is
// not declared.
func (l *Limiter) Entity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	reader, err := l.entityReader()
	if err != nil {
		return nil, err
	}
	if reason := identifier.CheckEntity(name); reason != "" {
		return nil, invalid("entity", name, reason)
	}
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	e, err := reader.ReadEntity(storeCtx, name)
	if err != nil {
		return nil, classify(err)
	}
	if e == nil {
		return nil, weir.NewError(weir.NotFound, "entity", name, "is not declared")
	}
	return e, nil
}

// SetEntity declares an entity, or changes its parent and whether it cascades; its limits stay. A
// parent that is not declared, a cycle of parents, and a cascade deeper than [Options.CascadeDepth]
// are errors with code [weir.Invalid].
func (l *Limiter) SetEntity(ctx context.Context, name, parent string, cascade bool) error {
	editor, err := l.editor()
	if err != nil {
		return err
	}
	if err := l.checkParent(name, parent, cascade); err != nil {
		return err
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		if cascade {
			if err := l.checkDepth(ctx, name, parent); err != nil {
				return err
			}
		}
		return reparentError(editor.WriteEntity(ctx, l.options.Now(), name, parent, cascade), parent)
	})
}

// checkParent refuses the definition of an entity that is wrong by itself.
func (l *Limiter) checkParent(name, parent string, cascade bool) error {
	if reason := identifier.CheckEntity(name); reason != "" {
		return invalid("entity", name, reason)
	}
	switch reason := identifier.CheckEntity(parent); {
	case parent == "" && cascade:
		return invalid("cascade", true, "needs a parent")
	case parent != "" && reason != "":
		return invalid("parent", parent, reason)
	case parent == name:
		return invalid("parent", parent, "is the entity itself")
	}
	return nil
}

// reparentError returns a store's error about its configuration as an error about the parent, which
// is the only part of the configuration that the caller named.
func reparentError(err error, parent string) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Invalid || !strings.HasPrefix(e.Field, "entities.") {
		return err
	}
	c := *e
	c.Field, c.Value = "parent", clip.Text(parent)
	return &c
}

// DeleteEntity removes an entity and its limits. The error has code [weir.NotFound] if the entity
// is not declared, and [weir.Conflict] if it is the parent of another entity. Live leases of the
// entity can still be settled.
func (l *Limiter) DeleteEntity(ctx context.Context, name string) error {
	editor, err := l.editor()
	if err != nil {
		return err
	}
	if reason := identifier.CheckEntity(name); reason != "" {
		return invalid("entity", name, reason)
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		return editor.DeleteEntity(ctx, l.options.Now(), name)
	})
}

// Entities returns a page of the names of declared entities, in order. A nil query means the first
// page of all.
func (l *Limiter) Entities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	reader, err := l.entityReader()
	if err != nil {
		return nil, err
	}
	if q == nil {
		q = &weir.EntityQuery{}
	}
	checked := *q
	if err := l.checkQuery(&checked); err != nil {
		return nil, err
	}
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	page, err := reader.ListEntities(storeCtx, &checked)
	if err != nil {
		return nil, classify(err)
	}
	return page, nil
}

func (l *Limiter) checkQuery(q *weir.EntityQuery) error {
	if reason := identifier.CheckEntity(q.Parent); q.Parent != "" && reason != "" {
		return invalid("parent", q.Parent, reason)
	}
	if reason := identifier.CheckResource(q.Resource); q.Resource != "" && q.Resource != weir.DefaultResource && reason != "" {
		return invalid("resource", q.Resource, reason)
	}
	var err error
	q.Size, err = pageSize(q.Size)
	return err
}

// pageSize returns the size of a page of a list; the default for 0.
func pageSize(n int) (int, error) {
	if n == 0 {
		return defaultPage, nil
	}
	if n < 1 || n > maxPage {
		return 0, invalid("size", n, fmt.Sprintf("must be between 1 and %d", maxPage))
	}
	return n, nil
}

// Capacity returns the statuses of a resource's limits for every entity that has something in use
// on it or limits of its own on it, sorted by entity. It is not an error if there are none.
func (l *Limiter) Capacity(ctx context.Context, resource string) ([]weir.LimitStatus, error) {
	if reason := identifier.CheckResource(resource); reason != "" {
		return nil, invalid("resource", resource, reason)
	}
	lister, ok := l.store.(driver.SubjectLister)
	if !ok {
		return nil, weir.NewError(weir.Unsupported, "resource", resource,
			"cannot be reported: this store cannot list entities")
	}
	now := l.options.Now()
	l.leases.clock(now)
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	names, err := lister.Entities(storeCtx, now, resource)
	if err != nil {
		return nil, classify(err)
	}
	of := make([]weir.Subject, len(names))
	for i, name := range names {
		of[i] = weir.Subject{Entity: name, Resource: resource}
	}
	return l.status(storeCtx, now, of, false)
}

// checkDepth refuses a parent if a charge would then reach too many ancestors: those above the
// parent, together with the descendants that cascade to the entity.
func (l *Limiter) checkDepth(ctx context.Context, name, parent string) error {
	reader, ok := l.store.(driver.EntityReader)
	if !ok {
		return nil // the store cannot list entities; a charge that is too deep is refused later
	}
	depth := 1
	for at := parent; depth <= l.options.CascadeDepth; depth++ {
		e, err := reader.ReadEntity(ctx, at)
		if err != nil {
			return err
		}
		if e == nil || !e.Cascade || at == name {
			break // the store refuses a missing parent and a cycle
		}
		at = e.Parent
	}
	below, err := l.cascadeBelow(ctx, reader, name, l.options.CascadeDepth-depth+1)
	if err != nil {
		return err
	}
	if depth+below > l.options.CascadeDepth {
		if cycle, err := leadsToCycle(ctx, reader, name, parent); err != nil || cycle {
			return err // the store refuses a cycle
		}
		return invalid("cascade", true,
			fmt.Sprintf("would reach more than the %d levels that are allowed", l.options.CascadeDepth))
	}
	return nil
}

// leadsToCycle reports whether the ancestors of an entity with this parent contain the entity, or
// contain a cycle that another program has stored.
func leadsToCycle(ctx context.Context, r driver.EntityReader, name, parent string) (bool, error) {
	seen := map[string]bool{name: true}
	for at := parent; at != ""; {
		if seen[at] {
			return true, nil
		}
		seen[at] = true
		e, err := r.ReadEntity(ctx, at)
		if err != nil || e == nil {
			return false, err
		}
		at = e.Parent
	}
	return false, nil
}

// cascadeBelow returns the number of levels of descendants that cascade to an entity, bounded by
// most.
func (l *Limiter) cascadeBelow(ctx context.Context, r driver.EntityReader, name string, most int) (int, error) {
	deepest := 0
	q := &weir.EntityQuery{Parent: name, Size: maxPage}
	for deepest < most {
		page, err := r.ListEntities(ctx, q)
		if err != nil {
			return 0, err
		}
		for _, child := range page.Names {
			e, err := r.ReadEntity(ctx, child)
			if err != nil {
				return 0, err
			}
			if e == nil || !e.Cascade || deepest >= most {
				continue
			}
			below, err := l.cascadeBelow(ctx, r, child, most-1)
			if err != nil {
				return 0, err
			}
			deepest = max(deepest, below+1)
		}
		if page.Next == "" {
			return deepest, nil
		}
		q.After = page.Next
	}
	return deepest, nil
}

func (l *Limiter) entityReader() (driver.EntityReader, error) {
	if reader, ok := l.store.(driver.EntityReader); ok {
		return reader, nil
	}
	return nil, weir.NewError(weir.Unsupported, "store", "", "cannot list entities")
}
