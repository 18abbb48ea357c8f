package httphandler

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// adminRoutes read and change the configuration.
func adminRoutes() []route {
	const (
		system   = "/v1/admin/system"
		resource = "/v1/admin/resources/{resource}/limits"
		entity   = "/v1/admin/entities/{entity}"
	)
	admin := func(method, path string, serve endpoint, query ...string) route {
		return route{method: method, path: path, role: RoleAdmin, query: query, serve: serve}
	}
	return []route{
		admin("GET", system, (*Handler).getSystem),
		admin("PUT", system+"/on_unavailable", (*Handler).putPolicy),
		admin("GET", system+"/limits", at(systemPlace, (*Handler).getLimits)),
		admin("PUT", system+"/limits", at(systemPlace, (*Handler).putLimits)),
		admin("DELETE", system+"/limits", at(systemPlace, (*Handler).deleteLimits)),
		admin("GET", resource, at(resourcePlace, (*Handler).getLimits)),
		admin("PUT", resource, at(resourcePlace, (*Handler).putLimits)),
		admin("DELETE", resource, at(resourcePlace, (*Handler).deleteLimits)),
		admin("GET", "/v1/admin/entities", (*Handler).listEntities,
			"parent", "resource", "after", "size"),
		admin("GET", entity, (*Handler).getEntity),
		admin("PUT", entity, (*Handler).putEntity),
		admin("DELETE", entity, (*Handler).deleteEntity),
		admin("GET", entity+"/limits", at(entityPlace, (*Handler).getLimits), "resource"),
		admin("PUT", entity+"/limits", at(entityPlace, (*Handler).putLimits), "resource"),
		admin("DELETE", entity+"/limits", at(entityPlace, (*Handler).deleteLimits), "resource"),
	}
}

// at makes a route of what is done to the limits of a place.
func at(
	place func(*incoming) weir.Subject,
	serve func(*Handler, context.Context, *incoming, weir.Subject) (*answer, error),
) endpoint {
	return func(h *Handler, ctx context.Context, c *incoming) (*answer, error) {
		return serve(h, ctx, c, place(c))
	}
}

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

func (h *Handler) getSystem(ctx context.Context, _ *incoming) (*answer, error) {
	policy, err := h.options.Admin.Policy(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := h.options.Admin.Limits(ctx, weir.Subject{})
	if err != nil {
		return nil, err
	}
	return &answer{body: apijson.System{OnUnavailable: policy, Limits: apijson.LimitsOf(limits)}}, nil
}

func (h *Handler) putPolicy(ctx context.Context, c *incoming) (*answer, error) {
	policy, err := apijson.ReadPolicy(c.in)
	if err != nil {
		return nil, err
	}
	if err := h.options.Admin.SetPolicy(ctx, policy); err != nil {
		return nil, err
	}
	return &answer{body: apijson.Policy{OnUnavailable: policy, Note: h.options.AdminNote}}, nil
}

func (h *Handler) getLimits(ctx context.Context, _ *incoming, at weir.Subject) (*answer, error) {
	limits, err := h.options.Admin.Limits(ctx, at)
	if err != nil {
		return nil, err
	}
	return &answer{body: apijson.LimitSet{Limits: apijson.LimitsOf(limits)}}, nil
}

// putLimits answers with the limits as they are now, defaults filled in.
func (h *Handler) putLimits(ctx context.Context, c *incoming, at weir.Subject) (*answer, error) {
	limits, err := apijson.ReadLimitSet(c.in)
	if err != nil {
		return nil, err
	}
	return h.setLimits(ctx, at, limits)
}

func (h *Handler) deleteLimits(ctx context.Context, _ *incoming, at weir.Subject) (*answer, error) {
	return h.setLimits(ctx, at, nil)
}

func (h *Handler) setLimits(
	ctx context.Context, at weir.Subject, limits []weir.Limit,
) (*answer, error) {
	if err := h.options.Admin.SetLimits(ctx, at, limits); err != nil {
		return nil, err
	}
	normal := make([]weir.Limit, len(limits))
	for i, l := range limits {
		n, err := l.Normalize()
		if err != nil {
			return nil, err
		}
		normal[i] = n
	}
	return &answer{body: apijson.LimitSet{Limits: apijson.LimitsOf(normal), Note: h.options.AdminNote}}, nil
}

func (h *Handler) listEntities(ctx context.Context, c *incoming) (*answer, error) {
	return h.page(ctx, c, &weir.EntityQuery{Parent: c.query["parent"], Resource: c.query["resource"]})
}

func (h *Handler) getEntity(ctx context.Context, c *incoming) (*answer, error) {
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
	return &answer{body: body}, nil
}

func (h *Handler) putEntity(ctx context.Context, c *incoming) (*answer, error) {
	body, err := apijson.ReadEntity(c.in)
	if err != nil {
		return nil, err
	}
	body.Entity, body.Note = c.r.PathValue("entity"), h.options.AdminNote
	if err := h.options.Admin.SetEntity(ctx, body.Entity, body.Parent, body.Cascade); err != nil {
		return nil, err
	}
	return &answer{body: body}, nil
}

func (h *Handler) deleteEntity(ctx context.Context, c *incoming) (*answer, error) {
	name := c.r.PathValue("entity")
	if err := h.options.Admin.DeleteEntity(ctx, name); err != nil {
		return nil, err
	}
	return &answer{body: apijson.Entity{Entity: name, Note: h.options.AdminNote}}, nil
}
