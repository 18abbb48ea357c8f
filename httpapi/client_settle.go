package httpapi

import (
	"context"
	"net/http"

	"github.com/weir-limiter/weir"
)

// Adjust sets what a live lease stands for; see [weir.Service].
func (c *Client) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	body, err := totalsBodyOf("totals", totals)
	if err != nil {
		return nil, err
	}
	return c.settle(ctx, "/v1/adjust", id, &adjustBody{LeaseID: id, Seq: seq, Totals: body})
}

// Complete replaces what was reserved by what was used and ends the lease; see [weir.Service].
func (c *Client) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	body, err := totalsBodyOf("actuals", actuals)
	if err != nil {
		return nil, err
	}
	return c.settle(ctx, "/v1/complete", id, &completeBody{LeaseID: id, Actuals: body})
}

// Cancel gives everything back and ends the lease; see [weir.Service].
func (c *Client) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return c.settle(ctx, "/v1/cancel", id, &leaseRefBody{id})
}

// Extend renews the lease and those of its holds that have not timed out; see [weir.Service].
func (c *Client) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return c.settle(ctx, "/v1/extend", id, &leaseRefBody{id})
}

func (c *Client) settle(
	ctx context.Context, path string, id weir.LeaseID, b any,
) (receipt *weir.Receipt, err error) {
	if id.IsZero() { // no lease has it, and the wire does not
		return nil, &weir.Error{Code: weir.UnknownLease, Field: "lease_id", Value: id.String(),
			Reason: "is not known here"}
	}
	body, err := write(b)
	if err != nil {
		return nil, err
	}
	out := c.do(ctx, &call{
		method: http.MethodPost, path: path, body: body, most: mostOfVerb,
		accept: func(body []byte) (err error) {
			receipt, err = readReceipt(body, id)
			return err
		},
	})
	if out.err != nil {
		return nil, out.err
	}
	return receipt, nil
}
