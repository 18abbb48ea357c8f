package httphandler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/apijson"
)

// longestApply bounds the answer to an apply, or to a purge. It is as long as the client waits.
const longestApply = 15 * time.Minute

// answerTime is how much of longestApply is left for writing the answer to a purge.
const answerTime = 10 * time.Second

func (h *Handler) planLimits(ctx context.Context, c *incoming) (any, error) {
	f, err := c.reader.limitsFile(c.in)
	if err != nil {
		return nil, err
	}
	h.takeLong(c)
	return h.options.Limits.PlanLimits(ctx, f)
}

// applyLimits goes on if the client leaves: half of a file is no state that anybody wants.
func (h *Handler) applyLimits(ctx context.Context, c *incoming) (any, error) {
	f, err := c.reader.limitsFile(c.in)
	if err := cmp.Or(apijson.NoConditions(c.r.Header), err); err != nil {
		return nil, err
	}
	h.takeLong(c)
	p, err := h.options.Limits.ApplyLimits(context.WithoutCancel(ctx), f)
	h.tellApplied(ctx, c, p, err)
	if err != nil {
		return nil, err
	}
	if p.Note == "" && !p.Nothing() {
		p.Note = h.options.AdminNote
	}
	return p, nil
}

// tellApplied tells the trail of each change of an apply, as if it had been asked for alone, or of an
// apply that was not made. A malformed file is told as a refused request.
func (h *Handler) tellApplied(ctx context.Context, c *incoming, p *httpapi.LimitsPlan, err error) {
	if h.options.Trail == nil || err != nil && refusalKind(err) != "" {
		return
	}
	told := Change{Action: "limits_applied", Request: c.r, Status: http.StatusOK}
	if h.options.Authenticate != nil {
		told.By = c.identity
	}
	if err != nil {
		told.Err, told.Status = err, apijson.ProblemOf(err).Status
		h.options.Trail.Changed(ctx, &told)
		return
	}
	for i := range p.Changes {
		one, of := told, &p.Changes[i]
		one.Action = appliedAction(of)
		one.At = weir.Subject{Entity: of.Entity, Resource: of.Resource}
		one.Before, one.After = appliedValue(of, of.Was), appliedValue(of, of.Is)
		if of.Error != "" {
			one.Err, one.Status, one.After = errors.New(of.Error), http.StatusServiceUnavailable, ""
		}
		h.options.Trail.Changed(ctx, &one)
	}
	if p.Behind != nil {
		told.Err, told.Status = errors.New("buckets in use do not have the limits yet: "+p.Behind.Reason),
			http.StatusServiceUnavailable
		h.options.Trail.Changed(ctx, &told)
	}
}

// appliedAction returns the action of one change of an apply.
func appliedAction(c *httpapi.LimitsChange) string {
	deletes := c.Action == "delete"
	switch {
	case c.Limit != "" && deletes:
		return "limits_deleted"
	case c.Limit != "":
		return "limits_set"
	case c.Entity != "" && deletes:
		return "entity_deleted"
	case c.Entity != "":
		return "entity_set"
	case c.Attribute == "on_unavailable":
		return "on_unavailable_set"
	}
	return "retention_set"
}

// appliedValue describes one value of a change of an apply.
func appliedValue(c *httpapi.LimitsChange, value string) string {
	switch {
	case value == "":
		return nothing
	case c.Attribute == "parent" || c.Attribute == "cascade":
		return c.Attribute + " " + value
	case strings.HasPrefix(c.Attribute, "retention."):
		return strings.TrimPrefix(c.Attribute, "retention.") + " " + value
	}
	return value
}

func (h *Handler) exportLimits(ctx context.Context, c *incoming) (any, error) {
	h.takeLong(c)
	return h.options.Limits.ExportLimits(ctx)
}

// takeLong lets the answer take longestApply, if the connection can.
func (*Handler) takeLong(c *incoming) {
	//nolint:errcheck,gosec // Without it the server's own bound holds.
	http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(longestApply))
}

// limitsFile reads an [httpapi.LimitsFile]. The service parses the file.
func (d *bodyReader) limitsFile(text []byte) (*httpapi.LimitsFile, error) {
	if err := d.begin(text); err != nil {
		return nil, err
	}
	f, given := &httpapi.LimitsFile{}, false
	if d.fields(func(name []byte) bool {
		switch string(name) {
		case "name":
			f.Name = d.string()
		case "text":
			f.Text, given = d.string(), true
		case "yes":
			f.Yes = d.boolean()
		case "take_over":
			f.TakeOver = d.boolean()
		case "adopt":
			f.Adopt = d.boolean()
		default:
			return false
		}
		return true
	}) {
		d.require("text", given)
	}
	return f, d.end()
}
