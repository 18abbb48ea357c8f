package limiter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/identifier"
)

// The methods below read and change what the store has configured, a piece at a time. A place is a
// [weir.Subject] of which parts may be empty: the system's limits where both are, a resource's
// where it has no entity, otherwise an entity's own, on [weir.DefaultResource] for every resource
// without limits of its own. A store that cannot answers with code [weir.Unsupported]. What a
// change does to live state is in "Changed limits" in docs/semantics.md.

// Limits returns the limits that are configured at exactly one place, by name; none is no error.
func (l *Limiter) Limits(ctx context.Context, at weir.Subject) ([]weir.Limit, error) {
	level, err := l.levelOf(at)
	if err != nil {
		return nil, err
	}
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	config, err := l.readConfig(storeCtx, at, false)
	if err != nil {
		return nil, classify(err)
	}
	for _, stored := range config.Levels {
		if stored.Level == level {
			return slices.Clone(stored.Limits), nil
		}
	}
	return nil, nil
}

// SetLimits makes limits the only ones at a place, from the next call on; none removes them. An
// entity that was not declared is declared by limits of its own. Every mistake in the limits is
// reported, joined, and then nothing changes.
func (l *Limiter) SetLimits(ctx context.Context, at weir.Subject, limits []weir.Limit) error {
	editor, err := l.editor()
	if err != nil {
		return err
	}
	if _, err := l.levelOf(at); err != nil {
		return err
	}
	normal, err := weir.NormalizeLimits("limits", limits)
	if err != nil {
		return fmt.Errorf("weir: set limits: %w", err)
	}
	for i := range normal {
		if err := checkSupported(&l.traits, "limits."+normal[i].Name, &normal[i]); err != nil {
			return err
		}
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		return editor.WriteLimits(ctx, l.options.Now(), at, normal)
	})
}

// Policy returns the system's on_unavailable.
func (l *Limiter) Policy(ctx context.Context) (weir.Policy, error) {
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	config, err := l.readConfig(storeCtx, weir.Subject{}, false)
	if err != nil {
		return "", classify(err)
	}
	if config.OnUnavailable == "" {
		return weir.Block, nil
	}
	return config.OnUnavailable, nil
}

// SetPolicy makes p the system's on_unavailable.
func (l *Limiter) SetPolicy(ctx context.Context, p weir.Policy) error {
	editor, err := l.editor()
	if err != nil {
		return err
	}
	if p != weir.Block && p != weir.Allow {
		return invalid("on_unavailable", string(p), "must be block or allow")
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		if err := editor.WritePolicy(ctx, l.options.Now(), p); err != nil {
			return err
		}
		l.policy.set(p)
		return nil
	})
}

// Applied returns the limits of a subject that the cache knows, and nil where it knows none: it
// never asks the store, and time stands at the latest call. They are shared: do not change them.
func (l *Limiter) Applied(s weir.Subject) []weir.Limit {
	r := l.cache.peek(l.cacheKey(s), l.leases.latestNow.Load())
	if r == nil {
		return nil
	}
	return r.limits
}

// levelOf says which level a place is, or what is wrong with it.
func (l *Limiter) levelOf(at weir.Subject) (weir.Level, error) {
	if at.Entity != "" {
		if reason := identifier.CheckEntity(at.Entity, l.traits.EntitySlash); reason != "" {
			return "", invalid("entity", at.Entity, reason)
		}
	} else if at.Resource == "" {
		return weir.LevelSystem, nil
	}
	if at.Entity != "" && at.Resource == weir.DefaultResource {
		return weir.LevelEntityDefault, nil
	}
	if reason := identifier.CheckResource(at.Resource); reason != "" {
		return "", invalid("resource", at.Resource, reason)
	}
	if at.Entity == "" {
		return weir.LevelResource, nil
	}
	return weir.LevelEntity, nil
}

// changeConfig checks and does something to the configuration, one change at a time, and forgets
// what was resolved before.
func (l *Limiter) changeConfig(ctx context.Context, write func(ctx context.Context) error) error {
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	select {
	case l.configLock <- struct{}{}: // also for a caller who is about to leave
	default:
		select {
		case l.configLock <- struct{}{}:
		case <-storeCtx.Done():
			return &weir.Error{Code: weir.Unavailable, Reason: "another change is under way", Err: storeCtx.Err()}
		}
	}
	defer func() { <-l.configLock }()
	err := write(storeCtx)
	l.DropCache() // whatever came of it: a write that is reported as failed may have happened
	if err != nil {
		return classify(err)
	}
	return nil
}

func (l *Limiter) editor() (driver.ConfigEditor, error) {
	if editor, ok := l.store.(driver.ConfigEditor); ok {
		return editor, nil
	}
	return nil, weir.NewError(weir.Unsupported, "store", "", "cannot change its configuration a piece at a time")
}

// Configure makes d the store's whole configuration, from the next call on; see "Changed limits" in
// docs/semantics.md. Every mistake is reported, joined, and then nothing changes. A store that
// keeps its configuration elsewhere answers with code [weir.Unsupported].
func (l *Limiter) Configure(ctx context.Context, d *weir.Definitions) error {
	writer, ok := l.store.(driver.ConfigWriter)
	if !ok {
		return weir.NewError(weir.Unsupported, "limits", "", "this store keeps its configuration itself")
	}
	if d == nil {
		return invalid("definitions", nil, "must be given")
	}
	normal, err := d.Normalize()
	if err == nil {
		err = l.checkDefinitions(normal)
	}
	if err != nil {
		return fmt.Errorf("weir: configure: %w", err)
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		if err := writer.WriteConfig(ctx, l.options.Now(), normal); err != nil {
			return err
		}
		l.policy.set(normal.OnUnavailable)
		return nil
	})
}

// checkDefinitions refuses what the store or the options cannot do.
func (l *Limiter) checkDefinitions(d *weir.Definitions) error {
	var errs []error
	for field, limit := range d.All {
		if err := checkSupported(&l.traits, field, limit); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		field := "entities." + name
		if reason := identifier.CheckEntity(name, l.traits.EntitySlash); reason != "" {
			errs = append(errs, invalid(field, name, reason))
		}
		depth := 0
		for at := d.Entities[name]; at.Cascade; at = d.Entities[at.Parent] {
			depth++
		}
		if depth > l.options.CascadeDepth {
			errs = append(errs, invalid(field+".cascade", depth,
				fmt.Sprintf("reaches more than the %d levels that are allowed", l.options.CascadeDepth)))
		}
	}
	return errors.Join(errs...)
}
