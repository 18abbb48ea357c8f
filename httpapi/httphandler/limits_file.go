package httphandler

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-limiter/weir/httpapi"
)

// longestApply bounds the answer to an apply. It is as long as the client waits.
const longestApply = 15 * time.Minute

func (h *Handler) planLimits(ctx context.Context, c *incoming) (any, error) {
	f, err := c.reader.limitsFile(c.in)
	if err != nil {
		return nil, err
	}
	h.answerWithin(c, longestApply)
	return h.options.Limits.PlanLimits(ctx, f)
}

// applyLimits goes on if the client leaves: half of a file is no state that anybody wants.
func (h *Handler) applyLimits(ctx context.Context, c *incoming) (any, error) {
	f, err := c.reader.limitsFile(c.in)
	if err != nil {
		return nil, err
	}
	h.answerWithin(c, longestApply)
	p, err := h.options.Limits.ApplyLimits(context.WithoutCancel(ctx), f)
	if err != nil {
		return nil, err
	}
	if p.Note == "" && !p.Nothing() {
		p.Note = h.options.AdminNote
	}
	return p, nil
}

func (h *Handler) exportLimits(ctx context.Context, c *incoming) (any, error) {
	h.answerWithin(c, longestApply)
	return h.options.Limits.ExportLimits(ctx)
}

// answerWithin lets the answer take longer than others may, if the connection can.
func (*Handler) answerWithin(c *incoming, d time.Duration) {
	//nolint:errcheck,gosec // Without it the server's own bound holds.
	http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(d))
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
