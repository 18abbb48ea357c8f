package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

const limitsPath = "/v1/admin/limits"

// Bounds of the calls that read or write the whole configuration.
const (
	compareTimeout = 2 * time.Minute
	applyTimeout   = 15 * time.Minute
)

var _ LimitsAdmin = (*Client)(nil)

// PlanLimits compares a limits file with the configuration; see [LimitsAdmin].
func (c *Client) PlanLimits(ctx context.Context, f *LimitsFile) (*LimitsPlan, error) {
	k := post(limitsPath+"/plan", f)
	k.most, k.timeout = maxListReply, compareTimeout
	answer, out := call(ctx, c, k, readPlan)
	return answer, out.err
}

// ApplyLimits applies a limits file; see [LimitsAdmin]. The client sends it once. If the answer
// is lost, the error has code [weir.Unavailable], and the server goes on: apply the file again to
// learn the outcome. A server makes all changes of an apply even if the client leaves.
func (c *Client) ApplyLimits(ctx context.Context, f *LimitsFile) (*LimitsPlan, error) {
	k := post(limitsPath+"/apply", f)
	k.most, k.timeout, k.tries = maxListReply, applyTimeout, 1
	answer, out := call(ctx, c, k, readPlan)
	switch {
	case out.err == nil && answer.Note != "":
		c.options.Note(answer.Note)
	case out.unknown && ctx.Err() != nil:
		return nil, &weir.Error{Code: weir.Unavailable, Field: "limits", Err: out.err, Reason: "the server " +
			"has not answered yet; it goes on without its caller: weir limits plan shows what is left to do"}
	}
	return answer, out.err
}

// ExportLimits returns the configuration as a limits file; see [LimitsAdmin].
func (c *Client) ExportLimits(ctx context.Context) (*LimitsExport, error) {
	k := get(limitsPath + "/export")
	k.timeout = compareTimeout
	answer, out := call(ctx, c, k, func(body []byte) (*LimitsExport, error) {
		e, err := apijson.Read[LimitsExport](body)
		if err == nil && (e.Text == "" || e.Foreign == nil) {
			err = errors.New("has no limits file")
		}
		return e, err
	})
	return answer, out.err
}

func readPlan(body []byte) (*LimitsPlan, error) {
	p, err := apijson.Read[LimitsPlan](body)
	if err == nil && (p.Changes == nil || p.Unmanaged == nil) {
		err = errors.New("has no changes")
	}
	return p, err
}
