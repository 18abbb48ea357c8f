package httpapi

import (
	"context"
	"errors"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/internal/apijson"
)

// VersionAdmin reads entities and places with their versions, and changes them if they have a
// version. A version is in the ETag header; a change requires it with If-Match. If the store has
// no versions, versions are empty, and a condition is an error with code [weir.Unsupported].
type VersionAdmin interface {
	// Place returns the limits that are configured at one place, with their version.
	Place(ctx context.Context, at weir.Subject) (*change.Place, error)
	// ChangeLimits replaces the limits at a place if the place is as o requires, and returns the
	// new version. An empty list removes them. A nil o requires nothing.
	ChangeLimits(
		ctx context.Context, at weir.Subject, limits []weir.Limit, o *change.Options,
	) (version string, err error)
	// ChangeEntity declares an entity or changes it if it is as o requires, and returns the new
	// version. Its limits stay. A nil o requires nothing.
	ChangeEntity(
		ctx context.Context, name string, c *change.Entity, o *change.Options,
	) (version string, err error)
	// RemoveEntity removes an entity and its limits if it is as o requires. A nil o requires
	// nothing.
	RemoveEntity(ctx context.Context, name string, o *change.Options) error
}

// Place returns the limits that are configured at one place with their version; see
// [VersionAdmin].
func (c *Client) Place(ctx context.Context, at weir.Subject) (*change.Place, error) {
	path, err := placePath(at)
	if err != nil {
		return nil, err
	}
	limits, out := call(ctx, c, get(path), func(body []byte) ([]weir.Limit, error) {
		b, err := apijson.Read[apijson.LimitSet](body)
		if err == nil && b.Limits == nil {
			err = errors.New("has no limits")
		}
		if err != nil {
			return nil, err
		}
		return apijson.ReadLimits(b.Limits)
	})
	if out.err != nil {
		return nil, out.err
	}
	return &change.Place{Limits: limits, Version: out.version()}, nil
}

// ChangeLimits replaces the limits at a place; see [VersionAdmin].
func (c *Client) ChangeLimits(
	ctx context.Context, at weir.Subject, limits []weir.Limit, o *change.Options,
) (version string, err error) {
	path, err := placePath(at)
	if err != nil {
		return "", err
	}
	if err := apijson.CheckLimits(limits); err != nil {
		return "", err
	}
	k := remove(path)
	if len(limits) > 0 {
		k = put(path, &apijson.LimitSet{Limits: apijson.LimitsOf(limits)})
	}
	if err := k.require(o); err != nil {
		return "", err
	}
	out := sendEdit(ctx, c, k, func(b *apijson.LimitSet) (string, bool) {
		return b.Note, b.Limits != nil && len(b.Limits) == len(limits)
	})
	if len(limits) == 0 && out.unknown && alreadyGone(out.err) {
		return "", nil // an earlier attempt may have removed them
	}
	return out.version(), out.lostAnswer()
}

// ChangeEntity declares an entity or changes it; see [VersionAdmin].
func (c *Client) ChangeEntity(
	ctx context.Context, name string, e *change.Entity, o *change.Options,
) (version string, err error) {
	at, err := pathSegment("entity", name)
	if err == nil {
		err = apijson.CheckText("parent", e.Parent)
	}
	var normal *change.Entity
	if err == nil {
		normal, err = e.Normalize() // what is not valid UTF-8 would be changed on the way
	}
	if err != nil {
		return "", err
	}
	k := put("/v1/admin/entities/"+at, apijson.EntityChangeOf(normal))
	if err := k.require(o); err != nil {
		return "", err
	}
	out := sendEdit(ctx, c, k, func(b *apijson.Entity) (string, bool) {
		return b.Note, b.Entity == name
	})
	return out.version(), out.lostAnswer()
}

// RemoveEntity removes an entity and its limits; see [VersionAdmin].
func (c *Client) RemoveEntity(ctx context.Context, name string, o *change.Options) error {
	at, err := pathSegment("entity", name)
	if err != nil {
		return err
	}
	k := remove("/v1/admin/entities/" + at)
	if err := k.require(o); err != nil {
		return err
	}
	out := sendEdit(ctx, c, k, func(b *apijson.Entity) (string, bool) {
		return b.Note, b.Entity == name
	})
	if out.unknown && (errors.Is(out.err, weir.NotFound) || alreadyGone(out.err)) {
		return nil // an earlier attempt may have removed it
	}
	return out.lostAnswer()
}

// Resources returns the resources of an entity, or all; see [ListAdmin]. The role read is
// enough.
func (c *Client) Resources(ctx context.Context, entity string) ([]string, error) {
	path := "/v1/resources"
	if entity != "" {
		at, err := pathSegment("entity", entity)
		if err != nil {
			return nil, err
		}
		path = "/v1/entities/" + at + "/resources"
	}
	var names []string
	for after := ""; ; {
		page, err := ask(ctx, c, path+query("", "after", after, "size", "1000"),
			func(body []byte) (*apijson.ResourceList, error) { return apijson.ReadResources(body, after) })
		if err != nil {
			return nil, err
		}
		names = append(names, page.Resources...)
		if after = page.Next; after == "" {
			return names, nil
		}
	}
}

// require makes a call one that has the conditions of o.
func (k *apiCall) require(o *change.Options) error {
	switch {
	case o == nil:
	case o.IfAbsent && o.IfVersion != "":
		return apijson.Invalid("version", o.IfVersion, "cannot be required of what must not exist")
	case o.IfAbsent:
		k.ifNoneMatch = "*"
	case o.IfVersion == change.AnyVersion:
		k.ifMatch = o.IfVersion
	case o.IfVersion != "":
		if reason := apijson.VersionFault(o.IfVersion); reason != "" {
			return apijson.Invalid("version", o.IfVersion, reason)
		}
		k.ifMatch = apijson.ETag(o.IfVersion)
	}
	return nil
}

// version returns the version in the answer; empty if there is none.
func (r *callResult) version() string {
	if r.err != nil || r.header == nil {
		return ""
	}
	// A proxy that compresses the answer makes the ETag a weak one.
	tag := strings.TrimPrefix(r.header.Get("ETag"), "W/")
	if version, ok := apijson.VersionOf(tag); ok {
		return version
	}
	return ""
}

// alreadyGone reports whether a change was refused because there is nothing any more.
func alreadyGone(err error) bool {
	conflict, ok := errors.AsType[*change.ConflictError](err)
	return ok && conflict.Version == ""
}

// lostAnswer returns the error of a change with a condition. If an earlier attempt had no answer,
// it may have made the change itself that a later one found: then the outcome is unknown.
func (r *callResult) lostAnswer() error {
	if _, ok := errors.AsType[*change.ConflictError](r.err); !ok || !r.unknown {
		return r.err
	}
	return &weir.Error{
		Code: weir.Unavailable, Reason: "the server did not answer an earlier attempt, which may have made the change",
		Err: r.err,
	}
}
