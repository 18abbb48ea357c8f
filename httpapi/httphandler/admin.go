package httphandler

import (
	"context"
	"errors"
	"maps"
	"slices"

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
	change, err := c.reader.retention(c.in)
	if err != nil {
		return nil, err
	}
	if err := h.options.Admin.SetRetention(ctx, change); err != nil {
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
	if err != nil {
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
		limits, err := h.options.Admin.Limits(ctx, at(c))
		if err != nil {
			return nil, err
		}
		return apijson.LimitSet{Limits: apijson.LimitsOf(limits)}, nil
	}
}

func putLimits(at place) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		limits, err := c.reader.limitSet(c.in)
		if err != nil {
			return nil, err
		}
		return h.setLimits(ctx, at(c), limits)
	}
}

func deleteLimits(at place) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (any, error) {
		return h.setLimits(ctx, at(c), nil)
	}
}

// setLimits returns the answer with the limits that are now configured, with defaults filled in.
func (h *Handler) setLimits(ctx context.Context, at weir.Subject, limits []weir.Limit) (any, error) {
	if err := h.options.Admin.SetLimits(ctx, at, limits); err != nil {
		return nil, err
	}
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
	body := apijson.Entity{
		Entity: name, Parent: e.Parent, Cascade: e.Cascade,
		Limits: make(map[string]map[string]apijson.Limit, len(e.Limits)),
	}
	for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
		body.Limits[resource] = apijson.LimitsOf(e.Limits[resource])
	}
	return body, nil
}

func (h *Handler) putEntity(ctx context.Context, c *incoming) (any, error) {
	body, err := c.reader.entity(c.in)
	if err != nil {
		return nil, err
	}
	body.Entity, body.Note = c.r.PathValue("entity"), h.options.AdminNote
	if err := h.options.Admin.SetEntity(ctx, body.Entity, body.Parent, body.Cascade); err != nil {
		return nil, err
	}
	return body, nil
}

func (h *Handler) deleteEntity(ctx context.Context, c *incoming) (any, error) {
	name := c.r.PathValue("entity")
	if err := h.options.Admin.DeleteEntity(ctx, name); err != nil {
		return nil, err
	}
	return apijson.Entity{Entity: name, Note: h.options.AdminNote}, nil
}
