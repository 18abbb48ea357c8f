package httphandler

import (
	"cmp"
	"context"
	"errors"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

func (h *Handler) getSystem(ctx context.Context, _ *incoming) (any, error) {
	policy, err := h.options.Admin.Policy(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := h.options.Admin.Limits(ctx, weir.Subject{})
	if err != nil {
		return nil, err
	}
	body := apijson.System{OnUnavailable: policy, Limits: apijson.LimitsOf(limits)}
	switch r, err := h.options.Admin.Retention(ctx); {
	case err == nil:
		body.Retention = apijson.RetentionOf(r)
	case !errors.Is(err, weir.Unsupported):
		return nil, err
	}
	return body, nil
}

func (h *Handler) getRetention(ctx context.Context, _ *incoming) (any, error) {
	r, err := h.options.Admin.Retention(ctx)
	if err != nil {
		return nil, err
	}
	return apijson.RetentionOf(r), nil
}

// putRetention returns the answer with all settings that are now configured, not only those that
// have changed.
func (h *Handler) putRetention(ctx context.Context, c *incoming) (any, error) {
	settings, err := c.reader.retention(c.in)
	if err := cmp.Or(apijson.NoConditions(c.r.Header), err); err != nil {
		return nil, err
	}
	if err := h.options.Admin.SetRetention(ctx, settings); err != nil {
		return nil, err
	}
	r, err := h.options.Admin.Retention(ctx)
	if err != nil {
		return nil, err
	}
	body := apijson.RetentionOf(r)
	body.Note = h.options.AdminNote
	return body, nil
}

func (h *Handler) putPolicy(ctx context.Context, c *incoming) (any, error) {
	policy, err := c.reader.policy(c.in)
	if err := cmp.Or(apijson.NoConditions(c.r.Header), err); err != nil {
		return nil, err
	}
	if err := h.options.Admin.SetPolicy(ctx, policy); err != nil {
		return nil, err
	}
	return apijson.Policy{OnUnavailable: policy, Note: h.options.AdminNote}, nil
}

// place returns the place whose limits a request reads or changes.
type place func(c *incoming) weir.Subject

func systemPlace(*incoming) weir.Subject { return weir.Subject{} }

func resourcePlace(c *incoming) weir.Subject {
	return weir.Subject{Resource: c.r.PathValue("resource")}
}

func entityPlace(c *incoming) weir.Subject {
	resource, ok := c.query["resource"]
	if !ok {
		resource = weir.DefaultResource
	}
	return weir.Subject{Entity: c.r.PathValue("entity"), Resource: resource}
}

func getLimits(at place) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		place, err := h.options.Admin.Place(ctx, at(c))
		if err != nil {
			return nil, err
		}
		c.setVersion(place.Version)
		return apijson.LimitSet{Limits: apijson.LimitsOf(place.Limits)}, nil
	}
}

func putLimits(at place) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		limits, err := c.reader.limitSet(c.in)
		if err != nil {
			return nil, err
		}
		return h.setLimits(ctx, c, at(c), limits)
	}
}

func deleteLimits(at place) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		return h.setLimits(ctx, c, at(c), nil)
	}
}

// setLimits returns the answer with the limits that are now configured, with defaults filled in.
func (h *Handler) setLimits(
	ctx context.Context, c *incoming, at weir.Subject, limits []weir.Limit,
) (any, error) {
	conditions, err := apijson.Conditions(c.r.Header)
	if err != nil {
		return nil, err
	}
	version, err := h.options.Admin.ChangeLimits(ctx, at, limits, conditions)
	if err != nil {
		return nil, err
	}
	c.setVersion(version)
	normal := make([]weir.Limit, len(limits))
	for i, l := range limits {
		var err error
		if normal[i], err = l.Normalize(); err != nil {
			return nil, err
		}
	}
	return apijson.LimitSet{Limits: apijson.LimitsOf(normal), Note: h.options.AdminNote}, nil
}

func (h *Handler) listEntities(ctx context.Context, c *incoming) (any, error) {
	return h.page(ctx, c, &weir.EntityQuery{Parent: c.query["parent"], Resource: c.query["resource"]})
}

func (h *Handler) getEntity(ctx context.Context, c *incoming) (any, error) {
	name := c.r.PathValue("entity")
	e, err := h.options.Admin.Entity(ctx, name)
	if err != nil {
		return nil, err
	}
	c.setVersion(e.Version)
	return apijson.EntityOf(name, e), nil
}

// putEntity returns the answer with what was asked for. A name and metadata that were not given are
// not in it.
func (h *Handler) putEntity(ctx context.Context, c *incoming) (any, error) {
	conditions, wrong := apijson.Conditions(c.r.Header)
	given, err := c.reader.entity(c.in)
	if err := cmp.Or(wrong, err); err != nil {
		return nil, err
	}
	name := c.r.PathValue("entity")
	version, err := h.options.Admin.ChangeEntity(ctx, name, given, conditions)
	if err != nil {
		return nil, err
	}
	c.setVersion(version)
	body := apijson.EntityOf(name, new(given.Apply(name, weir.EntityDefinition{})))
	body.Note = h.options.AdminNote
	return body, nil
}

func (h *Handler) deleteEntity(ctx context.Context, c *incoming) (any, error) {
	conditions, err := apijson.Conditions(c.r.Header)
	if err != nil {
		return nil, err
	}
	name := c.r.PathValue("entity")
	if err := h.options.Admin.RemoveEntity(ctx, name, conditions); err != nil {
		return nil, err
	}
	return apijson.Entity{Entity: name, Note: h.options.AdminNote}, nil
}

// setVersion adds the ETag of a version to the answer, unless it is empty.
func (c *incoming) setVersion(version string) {
	if version != "" {
		c.w.Header().Set("ETag", apijson.ETag(version))
	}
}
