package httphandler

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// askRoutes only read.
func askRoutes() []route {
	return []route{
		{
			method: "GET", path: "/v1/status", role: RoleRead,
			query: []string{"entity", "resource"}, serve: (*Handler).status,
		},
		{
			method: "GET", path: "/v1/explain", role: RoleRead,
			query: []string{"entity", "resource"}, serve: (*Handler).explain,
		},
	}
}

// listRoutes only read, and need an [httpapi.Admin].
func listRoutes() []route {
	return []route{
		{
			method: "GET", path: "/v1/entities/{entity}/children", role: RoleRead,
			query: []string{"after", "size"}, serve: (*Handler).children,
		},
		{
			method: "GET", path: "/v1/resources/{resource}/capacity", role: RoleRead,
			serve: (*Handler).capacity,
		},
	}
}

func (h *Handler) status(ctx context.Context, c *incoming) (*answer, error) {
	if c.query["entity"] == "" {
		return nil, apijson.Invalid("entity", "", "must be given")
	}
	limits, err := h.service.Status(ctx, c.query["entity"], c.query["resource"])
	if err != nil {
		return nil, err
	}
	return &answer{body: apijson.LimitsStatus{Limits: apijson.StatusesOf(limits)}}, nil
}

func (h *Handler) explain(ctx context.Context, c *incoming) (*answer, error) {
	var missing []error
	for _, name := range []string{"entity", "resource"} {
		if c.query[name] == "" {
			missing = append(missing, apijson.Invalid(name, "", "must be given"))
		}
	}
	if len(missing) > 0 {
		return nil, apijson.Join(missing)
	}
	e, err := h.service.Explain(ctx, c.query["entity"], c.query["resource"])
	if err != nil {
		return nil, err
	}
	return &answer{body: apijson.ExplanationOf(e)}, nil
}

func (h *Handler) children(ctx context.Context, c *incoming) (*answer, error) {
	a, err := h.page(ctx, c, &weir.EntityQuery{Parent: c.r.PathValue("entity")})
	if err != nil {
		return nil, apijson.Reword(err, func(f *weir.Error) string {
			if f.Field == "parent" {
				return "entity" // as the path calls it
			}
			return f.Field
		})
	}
	return a, nil
}

// page answers a list of entities; where to begin and how many is in the query.
func (h *Handler) page(ctx context.Context, c *incoming, q *weir.EntityQuery) (*answer, error) {
	size, err := pageSize(c.query)
	if err != nil {
		return nil, err
	}
	q.After, q.Size = c.query["after"], size
	page, err := h.options.Admin.Entities(ctx, q)
	if err != nil {
		return nil, err
	}
	names := page.Names
	if names == nil {
		names = []string{}
	}
	return &answer{body: apijson.EntityList{Entities: names, Next: page.Next}}, nil
}

func (h *Handler) capacity(ctx context.Context, c *incoming) (*answer, error) {
	limits, err := h.options.Admin.Capacity(ctx, c.r.PathValue("resource"))
	if err != nil {
		return nil, err
	}
	return &answer{body: apijson.LimitsStatus{Limits: apijson.StatusesOf(limits)}}, nil
}

// recent answers GET /v1/activity.
func (h *Handler) recent(context.Context, *incoming) (*answer, error) {
	return &answer{body: h.options.Activity(h.options.Now())}, nil
}
