package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-limiter/weir"
)

// Reserve takes what the request asks, or is denied; see [weir.Service].
func (c *Client) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if r == nil {
		return nil, invalid("request", nil, "must be given")
	}
	body, err := reserveBodyOf(r)
	if err != nil {
		return nil, err
	}
	id := r.LeaseID
	if id.IsZero() {
		id = c.clock.leaseID(c.options.Now())
	}
	for try := 0; ; try++ {
		lease, out := c.reserve(ctx, id, body)
		if r.LeaseID.IsZero() && !out.unknown && refusesID(out.err) {
			// Nobody asked for this ID: its time was at fault, and nothing was charged.
			if next := c.clock.correct(try, out.header, c.options.Now()); !next.IsZero() {
				id = next
				continue
			}
		}
		if r.LeaseID.IsZero() && out.unknown && refusesID(out.err) {
			// The server cannot tell whether the ID was used before, and it may have been a moment ago.
			out.err = &weir.Error{Code: weir.Unavailable, Reason: "the server did not answer", Err: out.err}
		}
		return c.reserved(ctx, id, lease, out.err)
	}
}

// reserve sends a request under one lease ID, in every attempt the same.
func (c *Client) reserve(
	ctx context.Context, id weir.LeaseID, b *reserveBody,
) (lease *weir.Lease, out outcome) {
	b.LeaseID = id.String()
	body, err := write(b)
	if err != nil {
		return nil, outcome{err: err}
	}
	sent := c.options.Now()
	out = c.do(ctx, &call{
		method: http.MethodPost, path: "/v1/reserve", body: body, most: mostOfVerb,
		denies: true, lease: id,
		accept: func(body []byte) (err error) {
			lease, err = readLease(body, id)
			return err
		},
	})
	if out.err != nil {
		return nil, out
	}
	if !lease.Replay {
		c.clock.learn(lease.ReservedAt, sent, c.options.Now())
	}
	return lease, out
}

// reserved returns what became of a reservation.
func (c *Client) reserved(
	ctx context.Context, id weir.LeaseID, lease *weir.Lease, err error,
) (*weir.Lease, error) {
	if err == nil {
		return lease.Bind(c), nil
	}
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unavailable {
		return nil, err
	}
	if c.options.OnUnavailable == weir.Allow && ctx.Err() == nil {
		return c.degrade(id), nil
	}
	if e.Field == "" {
		e.Field, e.Value = "lease_id", id.String()
	}
	return nil, e
}

// refusesID reports whether an error is about the time in a lease ID.
func refusesID(err error) bool {
	e, ok := errors.AsType[*weir.Error](err)
	return ok && e.Code == weir.Invalid && e.Field == "lease_id"
}
