package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
	"github.com/weir-limiter/weir/internal/leaseid"
)

// Reserve takes the costs of a request, or is denied; see [weir.Service]. If the client abandons a
// reservation, it cancels the reservation in the background; see [Client].
func (c *Client) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	if r == nil {
		return nil, apijson.Invalid("request", nil, "must be given")
	}
	body, err := apijson.ReserveRequestOf(r)
	if err != nil {
		return nil, err
	}
	if !r.LeaseID.IsZero() {
		lease, out := c.reserve(ctx, r.LeaseID, body, 0)
		return c.reserved(ctx, r.LeaseID, lease, out.err)
	}
	var arrived reachTrace
	left := c.options.Attempts
	id := c.clock.leaseID(c.options.Now())
	for try := 0; ; try++ {
		lease, out := c.reserve(arrived.trace(ctx), id, body, left)
		switch {
		case !out.unknown && refusesID(out.err):
			// The server refused the time in the ID that the client made, and charged nothing.
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
			// The server has forgotten whether the ID was used, and an earlier attempt may have
			// used it. So the outcome is unknown.
			out.err = unanswered(out.err)
		}
		if out.unknown && out.err != nil && arrived.mayHaveReached() {
			c.abandon(ctx, id, out.pending)
		}
		return c.reserved(ctx, id, lease, out.err)
	}
}

func unanswered(cause error) *weir.Error {
	return &weir.Error{Code: weir.Unavailable, Reason: "the server did not answer", Err: cause}
}

// reserve sends a request with one lease ID. The argument tries bounds the attempts; 0 means the
// bound in the options.
func (c *Client) reserve(
	ctx context.Context, id weir.LeaseID, b *apijson.ReserveRequest, tries int,
) (lease *weir.Lease, out callResult) {
	b.LeaseID = id.String()
	k := post("/v1/reserve", b)
	k.denies, k.lease, k.tries = true, id, tries
	sent := c.options.Now()
	lease, out = call(ctx, c, k, func(body []byte) (*weir.Lease, error) {
		return apijson.ReadLease(body, id)
	})
	if out.err == nil && !lease.Replay {
		c.clock.observe(lease.ReservedAt, sent, c.options.Now())
	}
	return lease, out
}

// reserved returns the result of a reservation to the caller.
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

// Adjust changes the units for which a live lease stands; see [weir.Service].
func (c *Client) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	body, err := apijson.TotalsOf("totals", totals)
	if err != nil {
		return nil, err
	}
	return c.update(ctx, "/v1/adjust", id, &apijson.AdjustRequest{LeaseID: id, Seq: seq, Totals: body})
}

// Complete replaces what was reserved with what was used and ends the lease; see [weir.Service].
func (c *Client) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	body, err := apijson.TotalsOf("actuals", actuals)
	if err != nil {
		return nil, err
	}
	return c.update(ctx, "/v1/complete", id, &apijson.CompleteRequest{LeaseID: id, Actuals: body})
}

// Cancel refunds all units and ends the lease; see [weir.Service].
func (c *Client) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return c.update(ctx, "/v1/cancel", id, &apijson.LeaseRequest{LeaseID: id})
}

// Extend renews the lease and those of its holds that have not timed out; see [weir.Service].
func (c *Client) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return c.update(ctx, "/v1/extend", id, &apijson.LeaseRequest{LeaseID: id})
}

func (c *Client) update(
	ctx context.Context, path string, id weir.LeaseID, body any,
) (*weir.Receipt, error) {
	if id.IsZero() { // the server would refuse the body, and no lease has this ID
		return nil, &weir.Error{Code: weir.UnknownLease, Field: "lease_id", Value: id.String(),
			Reason: "is neither live nor remembered"}
	}
	receipt, out := call(ctx, c, post(path, body), func(body []byte) (*weir.Receipt, error) {
		return apijson.ReadReceipt(body, id)
	})
	return receipt, out.err
}

// degradedLife is the lifetime of a degraded lease, which is the engine's default.
const degradedLife = time.Hour

// degradedService is the service of degraded leases. No server knows these leases, so its verbs do
// nothing.
type degradedService struct{ *Client }

// degrade returns a degraded lease.
func (c *Client) degrade(id weir.LeaseID) *weir.Lease {
	at := c.nowMS()
	return (&weir.Lease{
		ID: id, ReservedAt: at, Expires: at.Add(degradedLife), Degraded: true,
	}).Bind(degradedService{c})
}

func (c *Client) nowMS() time.Time { return c.options.Now().UTC().Truncate(time.Millisecond) }

func (d degradedService) live(id weir.LeaseID) (*weir.Receipt, error) {
	r, err := d.ended(id)
	r.Expires = r.At.Add(degradedLife)
	return r, err
}

func (d degradedService) ended(id weir.LeaseID) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: id, At: d.nowMS(), Degraded: true}, nil
}

// Adjust returns the receipt of a live lease.
func (d degradedService) Adjust(
	_ context.Context, id weir.LeaseID, _ int64, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.live(id)
}

// Extend returns the receipt of a live lease.
func (d degradedService) Extend(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.live(id)
}

// Complete returns the receipt of an ended lease.
func (d degradedService) Complete(
	_ context.Context, id weir.LeaseID, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.ended(id)
}

// Cancel returns the receipt of an ended lease.
func (d degradedService) Cancel(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.ended(id)
}

// serverClock estimates from answers the number of milliseconds by which the server's clock is
// ahead of the client's. The client makes lease IDs with it, because the server judges the time in
// them.
type serverClock struct {
	offset atomic.Int64
	ids    leaseid.Rows // a DynamoDB table records the leases of a row together
}

// observe records an admission at an instant of the server's clock, between two instants of the
// client's. It changes the offset only if the admission contradicts it.
func (s *serverClock) observe(at, sent, received time.Time) {
	low, high := at.UnixMilli()-received.UnixMilli(), at.UnixMilli()-sent.UnixMilli()
	if low > high {
		return // the client's clock stepped back between them
	}
	if known := s.offset.Load(); known < low || known > high {
		s.offset.Store(min(max(known, low), high))
	}
}

// leaseID returns a new ID for an instant of the client's clock.
func (s *serverClock) leaseID(now time.Time) weir.LeaseID {
	return s.ids.Next(now.Add(time.Duration(s.offset.Load()) * time.Millisecond))
}

// corrections has the durations that are added to the Date of the answer that refused an ID, to
// make the next ID. A Date is cut to the second. The first correction reaches the end of that
// second, because a server that was opened in it refuses earlier IDs. The second reaches as far
// ahead as a server allows, for a server whose clock was put back.
var corrections = [...]time.Duration{time.Second, time.Minute}

// correct returns the next ID after a refusal, or the zero ID if there is none. The argument try
// counts refusals from 0.
func (s *serverClock) correct(try int, header http.Header, received time.Time) weir.LeaseID {
	if try >= len(corrections) {
		return weir.LeaseID{}
	}
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return weir.LeaseID{}
	}
	at := date.Add(corrections[try])
	if try == 0 {
		s.offset.Store(at.UnixMilli() - received.UnixMilli())
	}
	return weir.NewLeaseID(at)
}
