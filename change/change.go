// Package change has the types for changes of the configuration that must not undo somebody
// else's. It has no state.
//
// Entities, and the limits of a place, have a version: an opaque text that changes whenever they
// change. An administrator reads an entity or a place with its version, and makes a change on
// condition that the version is still the same. What is not there has no version: an entity that
// is not declared, and a place without limits.
package change

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/metadata"
	"github.com/weir-limiter/weir/internal/version"
)

// AnyVersion stands for every version in [Options.IfVersion].
const AnyVersion = "*"

// Options say in which state an entity or a place must be, so that it is changed. The check and
// the change are one: nobody else can make a change in between.
//
// If the state is another one, the error has code [weir.Conflict], the field "version", and as
// its cause a [*ConflictError]. If the state is what the change asks for already, there is no
// error: the call may have been repeated after a lost answer. That is not so for IfAbsent and for
// deletions.
type Options struct {
	// IfVersion is the version that it must have, from [Place.Version] or
	// [weir.EntityDefinition.Version], or [AnyVersion]. Default: none is required.
	IfVersion string
	// IfAbsent requires that there is no such entity, or that there are no limits at the place.
	// Default: false.
	IfAbsent bool
}

// IsZero reports whether any state will do.
func (o Options) IsZero() bool { return o == Options{} }

// Check returns an error unless the current version, which is empty for what is not there, is as
// o requires. The last change in its cause is empty: the limiter looks it up in the audit. what
// is the thing that has the version, for use in a sentence, such as "the entity acme". Only
// stores need it.
func (o Options) Check(current, what string) error {
	given, reason := o.IfVersion, ""
	switch {
	case o.IfAbsent && current != "":
		reason = what + " exists already: read it, and change it if it is not as it should be"
	case given == "" || given == current:
	case current == "":
		reason = what + " does not exist, or has been deleted meanwhile: create it without a version " +
			"if it should exist"
	case given != AnyVersion:
		reason = what + " has changed since it was read: read it again, and repeat the change if it still applies"
	}
	if reason == "" {
		return nil
	}
	e := weir.NewError(weir.Conflict, "version", given, reason)
	e.Err = &ConflictError{Version: current}
	return e
}

// ConflictError says how an entity or a place is, if it is not as [Options] require.
type ConflictError struct {
	// Version is the current version; empty if there is no such entity, or no limits.
	Version string
	// Action, By and At are those of the last change in the audit; zero if the audit has none. By
	// is empty if the audit does not say who made it.
	Action string
	By     string
	At     time.Time
}

// Error returns the current version and the last change in one line.
func (e *ConflictError) Error() string {
	text := "there is none now"
	if e.Version != "" {
		text = fmt.Sprintf("the version is %q now", clip.Text(e.Version))
	}
	if e.Action == "" {
		return text + ", and the audit does not say who changed it"
	}
	by := "somebody whose name is not known"
	if e.By != "" {
		by = clip.Text(e.By)
	}
	return fmt.Sprintf("%s, and the last change was %s by %s at %s", text, clip.Text(e.Action), by,
		e.At.UTC().Format(time.RFC3339))
}

// Entity is a change of an entity. Its limits stay.
type Entity struct {
	// Parent and Cascade are as in a [weir.EntityDefinition].
	Parent  string
	Cascade bool
	// Name is the entity's name for people. Default: it stays as it is.
	Name *string
	// Metadata are all of the entity's metadata; an empty map removes them. Default: they stay as
	// they are.
	Metadata map[string]any
}

// EntityOf returns the change that makes an entity as a definition has it, but for its limits.
func EntityOf(e *weir.EntityDefinition) *Entity {
	c := &Entity{Parent: e.Parent, Cascade: e.Cascade, Name: &e.Name, Metadata: e.Metadata}
	if c.Metadata == nil {
		c.Metadata = map[string]any{}
	}
	return c
}

// Normalize returns a copy in which the metadata is in normal form, or every mistake in the name
// and the metadata, joined.
func (c *Entity) Normalize() (*Entity, error) {
	out := *c
	var errs []error
	if c.Name != nil {
		if reason := metadata.CheckName(*c.Name); reason != "" {
			errs = append(errs, weir.NewError(weir.Invalid, "name", *c.Name, reason))
		}
	}
	normal, path, reason := metadata.Normalize(c.Metadata)
	if reason != "" {
		errs = append(errs, weir.NewError(weir.Invalid, "metadata"+clip.Text(path), "", reason))
	}
	if out.Metadata = normal; normal == nil && c.Metadata != nil {
		out.Metadata = map[string]any{}
	}
	return &out, errors.Join(errs...)
}

// Apply returns an entity with the change made.
func (c *Entity) Apply(name string, e weir.EntityDefinition) weir.EntityDefinition {
	e.Parent, e.Cascade = c.Parent, c.Cascade
	if c.Name != nil {
		if e.Name = *c.Name; e.Name == name {
			e.Name = ""
		}
	}
	if c.Metadata != nil && !metadata.Equal(e.Metadata, c.Metadata) {
		if e.Metadata = metadata.Clone(c.Metadata); len(e.Metadata) == 0 {
			e.Metadata = nil
		}
	}
	return e
}

// Place is what is configured at one place: the system, a resource, or an entity on a resource.
type Place struct {
	// Limits are sorted by name.
	Limits []weir.Limit
	// Version is the version of the limits; empty if there are none. A store may have limits that
	// weir does not support: Limits leaves them out, and the version is that of all.
	Version string
}

// PlaceOf returns a copy of what is configured at exactly one place. The version is a hash of the
// limits. Stores that hold their configuration in the process implement [driver.PlaceReader] with
// it.
func PlaceOf(d *weir.Definitions, at weir.Subject) *Place {
	limits := d.System
	switch {
	case at.Entity != "":
		limits = d.Entities[at.Entity].Limits[at.Resource]
	case at.Resource != "":
		limits = d.Resources[at.Resource]
	}
	if len(limits) == 0 {
		return &Place{}
	}
	return &Place{Limits: slices.Clone(limits), Version: version.Of(limits)}
}

// PlaceName returns a place for use in a sentence, as [Options.Check] needs it.
func PlaceName(at weir.Subject) string {
	switch {
	case at.Entity != "" && at.Resource == weir.DefaultResource:
		return "the set of default limits of entity " + at.Entity
	case at.Entity != "":
		return "the set of limits of entity " + at.Entity + " on resource " + at.Resource
	case at.Resource != "":
		return "the set of limits of resource " + at.Resource
	}
	return "the set of limits of the system"
}
