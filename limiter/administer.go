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

// The methods below read and change the store's configuration, one place at a time. A place is a
// [weir.Subject] whose parts may be empty: with both empty it is the system, without an entity it
// is a resource, otherwise it is an entity on a resource. An entity on [weir.DefaultResource] means
// every resource on which the entity has no limits of its own. If the store does not support a
// method, the error has code [weir.Unsupported]. "Changed limits" in docs/semantics.md says what a
// change does to leases and units in use.

// Limits returns the limits that are configured at exactly one place, sorted by name. It is not an
// error if there are none.
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

// SetLimits makes limits the only ones at a place, from the next call on; an empty list removes
// them. Setting limits of an undeclared entity declares it. If there are mistakes in the limits,
// SetLimits returns all of them, joined, and changes nothing.
func (l *Limiter) SetLimits(ctx context.Context, at weir.Subject, limits []weir.Limit) error {
	editor, err := l.editor()
	if err != nil {
		return err
	}
	normal, err := l.checkPlace(at, limits)
	if err != nil {
		return err
	}
	return l.changeConfig(ctx, func(ctx context.Context) error {
		return editor.WriteLimits(ctx, l.options.Now(), at, normal)
	})
}

// Policy returns the system's policy for when the store does not answer (on_unavailable).
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

// SetPolicy sets the system's policy.
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

// Applied returns the limits of a subject that are in the cache, or nil. It does no I/O and reads
// no clock: the latest call decides whether a resolution is still fresh. The limits are shared: do
// not change them.
func (l *Limiter) Applied(s weir.Subject) []weir.Limit {
	r := l.cache.peek(l.cacheKey(s), l.leases.latestNow.Load())
	if r == nil {
		return nil
	}
	return r.limits
}

// levelOf returns the level of a place, or an error if it is malformed.
func (l *Limiter) levelOf(at weir.Subject) (weir.Level, error) {
	if at.Entity != "" {
		if reason := identifier.CheckEntity(at.Entity); reason != "" {
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

// changeConfig calls write and drops the cache. Changes by this process run one at a time, so that
// write may first read the configuration and check the change against it.
func (l *Limiter) changeConfig(ctx context.Context, write func(ctx context.Context) error) error {
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	select {
	case l.configLock <- struct{}{}: // even if the context has ended
	default:
		select {
		case l.configLock <- struct{}{}:
		case <-storeCtx.Done():
			return &weir.Error{Code: weir.Unavailable,
				Reason: "another change of the configuration is in progress", Err: storeCtx.Err()}
		}
	}
	defer func() { <-l.configLock }()
	err := write(storeCtx)
	// The cache is dropped after an error too: the write may have been applied.
	l.DropCache()
	if err != nil {
		return classify(err)
	}
	return nil
}

func (l *Limiter) editor() (driver.ConfigEditor, error) {
	if editor, ok := l.store.(driver.ConfigEditor); ok {
		return editor, nil
	}
	return nil, weir.NewError(weir.Unsupported, "store", "",
		"can only replace its configuration as a whole")
}

// Configure replaces the store's whole configuration with d, from the next call on; see "Changed
// limits" in docs/semantics.md. If there are mistakes in d, Configure returns all of them, joined,
// and changes nothing. If the store's configuration cannot be replaced, the error has code
// [weir.Unsupported].
func (l *Limiter) Configure(ctx context.Context, d *weir.Definitions) error {
	writer, ok := l.store.(driver.ConfigWriter)
	if !ok {
		return weir.NewError(weir.Unsupported, "limits", "",
			"this store keeps its own configuration")
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

// checkDefinitions refuses definitions that the store or the options do not support.
func (l *Limiter) checkDefinitions(d *weir.Definitions) error {
	var errs []error
	if !d.Retention.IsZero() {
		if _, ok := l.store.(driver.RetentionEditor); !ok {
			errs = append(errs, weir.NewError(weir.Unsupported, "system.retention", "", noRetention))
		}
	}
	for field, limit := range d.All {
		if err := checkSupported(&l.traits, field, limit); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		field := "entities." + name
		if reason := identifier.CheckEntity(name); reason != "" {
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
