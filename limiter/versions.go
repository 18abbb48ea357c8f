package limiter

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/identifier"
)

// Place returns the limits that are configured at exactly one place, as [Limiter.Limits] does,
// with their version. The version is empty if there are none, and if the store has no versions.
func (l *Limiter) Place(ctx context.Context, at weir.Subject) (*change.Place, error) {
	reader, ok := l.store.(driver.PlaceReader)
	if !ok {
		limits, err := l.Limits(ctx, at)
		if err != nil {
			return nil, err
		}
		return &change.Place{Limits: limits}, nil
	}
	if _, err := l.levelOf(at); err != nil {
		return nil, err
	}
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	place, err := reader.ReadPlace(storeCtx, at)
	if err != nil {
		return nil, classify(err)
	}
	if place == nil {
		return nil, wrongAnswer("it is neither a place nor an error")
	}
	return place, nil
}

// ChangeLimits is [Limiter.SetLimits] on condition that the place is as o requires; nil requires
// nothing. It returns the version after the change, empty if the store has no versions.
func (l *Limiter) ChangeLimits(
	ctx context.Context, at weir.Subject, limits []weir.Limit, o *change.Options,
) (version string, err error) {
	editor, versions, err := l.versionEditor(o)
	if err != nil {
		return "", err
	}
	normal, err := l.checkPlace(at, limits)
	if err != nil {
		return "", err
	}
	err = l.changeConfig(ctx, func(ctx context.Context) error {
		if versions == nil {
			return editor.WriteLimits(ctx, l.options.Now(), at, normal)
		}
		version, err = versions.ChangeLimits(ctx, l.options.Now(), at, normal, optionsOf(o))
		return err
	})
	return version, l.nameChange(ctx, err, at)
}

// checkPlace returns the limits for a place, normalized, or what is wrong with them.
func (l *Limiter) checkPlace(at weir.Subject, limits []weir.Limit) ([]weir.Limit, error) {
	if _, err := l.levelOf(at); err != nil {
		return nil, err
	}
	normal, err := weir.NormalizeLimits("limits", limits)
	if err != nil {
		return nil, fmt.Errorf("weir: set limits: %w", err)
	}
	for i := range normal {
		if err := checkSupported(&l.traits, "limits."+normal[i].Name, &normal[i]); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

// ChangeEntity declares an entity or changes it, on condition that it is as o requires; nil
// requires nothing. It returns the version after the change, empty if the store has no versions.
// Errors are those of [Limiter.SetEntity]; a store that keeps no names and metadata refuses them
// with code [weir.Unsupported].
func (l *Limiter) ChangeEntity(
	ctx context.Context, name string, c *change.Entity, o *change.Options,
) (version string, err error) {
	editor, versions, err := l.versionEditor(o)
	if err != nil {
		return "", err
	}
	if c == nil {
		return "", invalid("entity", name, "must be given a change")
	}
	normal, err := c.Normalize()
	if err := errors.Join(l.checkParent(name, c.Parent, c.Cascade), err); err != nil {
		return "", err
	}
	if versions == nil && (c.Name != nil || c.Metadata != nil) {
		return "", weir.NewError(weir.Unsupported, "store", "", "keeps no names and metadata of entities")
	}
	err = l.changeConfig(ctx, func(ctx context.Context) error {
		if c.Cascade {
			if err := l.checkDepth(ctx, name, c.Parent); err != nil {
				return err
			}
		}
		if versions == nil {
			return reparentError(editor.WriteEntity(ctx, l.options.Now(), name, c.Parent, c.Cascade), c.Parent)
		}
		version, err = versions.ChangeEntity(ctx, l.options.Now(), name, normal, optionsOf(o))
		return reparentError(err, c.Parent)
	})
	return version, l.nameChange(ctx, err, weir.Subject{Entity: name})
}

// RemoveEntity is [Limiter.DeleteEntity] on condition that the entity is as o requires; nil
// requires nothing.
func (l *Limiter) RemoveEntity(ctx context.Context, name string, o *change.Options) error {
	editor, versions, err := l.versionEditor(o)
	if err != nil {
		return err
	}
	if reason := identifier.CheckEntity(name); reason != "" {
		return invalid("entity", name, reason)
	}
	if optionsOf(o).IfAbsent {
		return invalid("version", "", "cannot be that of an entity that does not exist")
	}
	err = l.changeConfig(ctx, func(ctx context.Context) error {
		if versions == nil {
			return editor.DeleteEntity(ctx, l.options.Now(), name)
		}
		return versions.RemoveEntity(ctx, l.options.Now(), name, optionsOf(o))
	})
	return l.nameChange(ctx, err, weir.Subject{Entity: name})
}

// optionsOf returns the options, or zero ones for nil.
func optionsOf(o *change.Options) change.Options {
	if o == nil {
		return change.Options{}
	}
	return *o
}

// longestVersion bounds the length of a version that a caller gives.
const longestVersion = 128

// versionEditor returns the store's editor; versions is nil if the store has no versions, which
// is an error if o has a condition.
func (l *Limiter) versionEditor(
	o *change.Options,
) (editor driver.ConfigEditor, versions driver.VersionEditor, err error) {
	if editor, err = l.editor(); err != nil {
		return nil, nil, err
	}
	given := optionsOf(o)
	if given.IfAbsent && given.IfVersion != "" {
		return nil, nil, invalid("version", given.IfVersion, "cannot be required of what must not exist")
	}
	if len(given.IfVersion) > longestVersion {
		return nil, nil, invalid("version", given.IfVersion,
			fmt.Sprintf("has %d bytes: it can have at most %d", len(given.IfVersion), longestVersion))
	}
	versions, ok := l.store.(driver.VersionEditor)
	if !ok && !given.IsZero() {
		return nil, nil, weir.NewError(weir.Unsupported, "version", given.IfVersion,
			"cannot be checked: this store has no versions")
	}
	return editor, versions, nil
}

// Resources returns, in order, the resources on which an entity has limits of its own or
// something in use. If entity is empty, it returns all that have limits, of their own or of an
// entity, or that are in use. If the store cannot list them, the error has code
// [weir.Unsupported].
func (l *Limiter) Resources(ctx context.Context, entity string) ([]string, error) {
	if reason := identifier.CheckEntity(entity); entity != "" && reason != "" {
		return nil, invalid("entity", entity, reason)
	}
	now := l.options.Now()
	l.leases.clock(now)
	storeCtx, cancel := l.administerContext(ctx)
	defer cancel()
	var names []string
	var err error
	all, canList := l.store.(driver.ResourceLister)
	ofEntity, canListOne := l.store.(driver.SubjectLister)
	switch {
	case entity == "" && canList:
		names, err = all.ListResources(storeCtx, now)
	case entity != "" && canListOne:
		names, err = ofEntity.Resources(storeCtx, now, entity)
	default:
		return nil, weir.NewError(weir.Unsupported, "store", "", "cannot list resources")
	}
	if err != nil {
		return nil, classify(err)
	}
	return names, nil
}
