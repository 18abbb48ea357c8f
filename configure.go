package weir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Configure makes d the store's whole configuration, from the next call on; see "Changed limits" in
// docs/semantics.md. Every mistake is reported, joined, and then nothing changes. A store that keeps
// its configuration elsewhere answers with code [Unsupported].
func (l *Limiter) Configure(ctx context.Context, d *Definitions) error {
	writer, ok := l.backend.(ConfigWriter)
	if !ok {
		return fault(Unsupported, "limits", "", "this store keeps its configuration itself")
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
	return l.change(ctx, func(ctx context.Context) error {
		if err := writer.WriteConfig(ctx, l.options.Now(), normal); err != nil {
			return err
		}
		l.policy.set(normal.OnUnavailable)
		return nil
	})
}

// checkDefinitions refuses what the store or the options cannot do.
func (l *Limiter) checkDefinitions(d *Definitions) error {
	var errs []error
	for field, limit := range d.All {
		if err := l.traits.supports(field, limit); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		field := "entities." + name
		if reason := checkEntity(name, l.traits.EntitySlash); reason != "" {
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
