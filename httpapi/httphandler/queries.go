package httphandler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

func (h *Handler) healthy(context.Context, *incoming) (any, error) {
	return apijson.Health{Status: "ok"}, nil
}

// ready shows the reason only if it is a [weir.Error], because /readyz needs no bearer token. The
// code is unavailable, or superseded as in the answer to a reserve.
func (h *Handler) ready(ctx context.Context, _ *incoming) (any, error) {
	err := h.options.Ready(ctx)
	if err == nil {
		return apijson.Health{Status: "ok"}, nil
	}
	fault := &weir.Error{Code: weir.Unavailable, Reason: "not ready"}
	if known, ok := errors.AsType[*weir.Error](err); ok {
		if known.Code == weir.Superseded {
			return nil, known
		}
		fault.Field, fault.Value, fault.Reason = known.Field, known.Value, known.Reason
	}
	return nil, apijson.Refusal(http.StatusServiceUnavailable, fault)
}

func (h *Handler) status(ctx context.Context, c *incoming) (any, error) {
	if c.query["entity"] == "" {
		return nil, apijson.Invalid("entity", "", "must be given")
	}
	limits, err := h.service.Status(ctx, c.query["entity"], c.query["resource"])
	if err != nil {
		return nil, err
	}
	return apijson.LimitsStatus{Limits: apijson.StatusesOf(limits)}, nil
}

func (h *Handler) explain(ctx context.Context, c *incoming) (any, error) {
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
	if text, ok := c.query["costs"]; ok {
		costs, err := readCosts(text)
		if err == nil {
			err = e.Charge(costs)
		}
		if err != nil {
			return nil, err
		}
	}
	return apijson.ExplanationOf(e), nil
}

// readCosts reads costs in a query: rpm=1,tpm=500.
func readCosts(text string) (weir.Costs, error) {
	costs := weir.Costs{}
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		name, digits, ok := strings.Cut(part, "=")
		_, again := costs[name]
		units, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case len(errs) == apijson.MaxMistakes:
		case !ok || name == "":
			errs = append(errs, apijson.Invalid("costs", part, "must be NAME=N, separated by commas"))
		case again:
			errs = append(errs, apijson.Invalid("costs."+apijson.Shorten(name), digits, "is given twice"))
		case err != nil:
			errs = append(errs, apijson.Invalid("costs."+apijson.Shorten(name), digits,
				fmt.Sprintf("must be a whole number of at most %d", int64(math.MaxInt64))))
		}
		costs[name] = units
	}
	return costs, apijson.Join(errs)
}

func (h *Handler) children(ctx context.Context, c *incoming) (any, error) {
	page, err := h.page(ctx, c, &weir.EntityQuery{Parent: c.r.PathValue("entity")})
	if err != nil {
		return nil, apijson.Reword(err, func(f *weir.Error) string {
			if f.Field == "parent" {
				return "entity" // as in the path
			}
			return f.Field
		})
	}
	return page, nil
}

// page returns the answer with a page of entities.
func (h *Handler) page(ctx context.Context, c *incoming, q *weir.EntityQuery) (any, error) {
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
	return apijson.EntityList{Entities: names, Next: page.Next}, nil
}

// resources returns the answer with a page of all resources, or of those of the entity in the path.
func (h *Handler) resources(ctx context.Context, c *incoming) (any, error) {
	size, err := pageSize(c.query)
	if err != nil {
		return nil, err
	}
	names, err := h.options.Admin.Resources(ctx, c.r.PathValue("entity"))
	if err != nil {
		return nil, err
	}
	from, found := slices.BinarySearch(names, c.query["after"])
	if found {
		from++
	}
	size = min(cmp.Or(size, defaultNames), len(names)-from)
	list := apijson.ResourceList{Resources: append([]string{}, names[from:from+size]...)}
	if from+size < len(names) {
		list.Next = names[from+size-1]
	}
	return list, nil
}

// defaultNames is the number of names in a page of resources by default, as in other lists.
const defaultNames = 100

func (h *Handler) capacity(ctx context.Context, c *incoming) (any, error) {
	limits, err := h.options.Admin.Capacity(ctx, c.r.PathValue("resource"))
	if err != nil {
		return nil, err
	}
	return apijson.LimitsStatus{Limits: apijson.StatusesOf(limits)}, nil
}

func (h *Handler) activity(context.Context, *incoming) (any, error) {
	return h.options.Activity(h.options.Now()), nil
}

// pageSize returns the query parameter size, or 0 if it is missing.
func pageSize(query map[string]string) (int, error) {
	text, ok := query["size"]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n < 1 || n > 1000 {
		return 0, apijson.Invalid("size", text, "must be between 1 and 1000")
	}
	return int(n), nil
}
