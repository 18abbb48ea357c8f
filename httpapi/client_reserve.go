package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-limiter/weir"
)

// Reserve takes what the request asks, or is denied; see [weir.Service]. If it ends without a
// lease while the outcome is unknown, it cancels in the background what may have been reserved;
// see [Client].
func (c *Client) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if r == nil {
		return nil, invalid("request", nil, "must be given")
	}
	body, err := reserveBodyOf(r)
	if err != nil {
		return nil, err
	}
	if !r.LeaseID.IsZero() {
		lease, out := c.reserve(ctx, r.LeaseID, body, 0)
		return c.reserved(ctx, r.LeaseID, lease, out.err)
	}
	var arrived arrival
	left := c.options.Attempts
	id := c.clock.leaseID(c.options.Now())
	for try := 0; ; try++ {
		lease, out := c.reserve(arrived.trace(ctx), id, body, left)
		switch {
		case !out.unknown && refusesID(out.err):
			// Nobody asked for this ID: its time was at fault, and nothing was charged.
			if next := c.clock.correct(try, out.header, c.options.Now()); !next.IsZero() {
				id = next
				continue
			}
		case out.unknown && errors.Is(out.err, weir.Ended):
			// The server has cancelled an earlier attempt, so nothing is charged under this ID.
			if left -= out.attempts; left > 0 {
				id = c.clock.leaseID(c.options.Now())
				continue
			}
			out.unknown = false
			out.err = unanswered(out.err)
		case out.unknown && refusesID(out.err):
			// The server cannot tell whether the ID was used before, and it may have been a
			// moment ago.
			out.err = unanswered(out.err)
		}
		if out.unknown && out.err != nil && arrived.possible() {
			c.abandon(ctx, id, out.pending)
		}
		return c.reserved(ctx, id, lease, out.err)
	}
}

func unanswered(cause error) *weir.Error {
	return &weir.Error{Code: weir.Unavailable, Reason: "the server did not answer", Err: cause}
}

// reserve sends a request under one lease ID, in every attempt the same. tries is how many
// attempts there may be; 0 for as many as the options say.
func (c *Client) reserve(
	ctx context.Context, id weir.LeaseID, b *reserveBody, tries int,
) (lease *weir.Lease, out outcome) {
	b.LeaseID = id.String()
	body, err := write(b)
	if err != nil {
		return nil, outcome{err: err}
	}
	sent := c.options.Now()
	out = c.do(ctx, &call{
		method: http.MethodPost, path: "/v1/reserve", body: body, most: mostOfVerb,
		denies: true, lease: id, tries: tries,
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
