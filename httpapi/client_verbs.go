package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Reserve takes what the request asks, or is denied; see [weir.Service]. A reservation that it
// abandons is cancelled in the background; see [Client].
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
	var arrived arrival
	left := c.options.Attempts
	id := c.clock.leaseID(c.options.Now())
	for try := 0; ; try++ {
		lease, out := c.reserve(arrived.trace(ctx), id, body, left)
		switch {
		case !out.unknown && refusesID(out.err):
			// The server refuses the time in the client's own ID, and charges nothing.
			if next := c.clock.correct(try, out.header, c.options.Now()); !next.IsZero() {
				id = next
				continue
			}
		case out.unknown && errors.Is(out.err, weir.Ended):
			// The server has cancelled an earlier attempt, so nothing is charged with this ID.
			if left -= out.attempts; left > 0 {
				id = c.clock.leaseID(c.options.Now())
				continue
			}
			out.unknown = false
			out.err = unanswered(out.err)
		case out.unknown && refusesID(out.err):
			// The server has forgotten whether the ID was used, and an earlier attempt may have used it.
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

// reserve sends a request with one lease ID. The argument tries bounds the attempts; 0 means the
// bound of the options.
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
		c.clock.learn(lease.ReservedAt, sent, c.options.Now())
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

// refusesID reports whether an error refuses the time in a lease ID.
func refusesID(err error) bool {
	e, ok := errors.AsType[*weir.Error](err)
	return ok && e.Code == weir.Invalid && e.Field == "lease_id"
}

// Adjust sets what a live lease stands for; see [weir.Service].
func (c *Client) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	body, err := apijson.TotalsOf("totals", totals)
	if err != nil {
		return nil, err
	}
	return c.update(ctx, "/v1/adjust", id, &apijson.AdjustRequest{LeaseID: id, Seq: seq, Totals: body})
}

// Complete replaces what was reserved by what was used and ends the lease; see [weir.Service].
func (c *Client) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	body, err := apijson.TotalsOf("actuals", actuals)
	if err != nil {
		return nil, err
	}
	return c.update(ctx, "/v1/complete", id, &apijson.CompleteRequest{LeaseID: id, Actuals: body})
}

// Cancel gives everything back and ends the lease; see [weir.Service].
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
	if id.IsZero() { // no lease has it, and the server would refuse the body
		return nil, &weir.Error{Code: weir.UnknownLease, Field: "lease_id", Value: id.String(),
			Reason: "is not known here"}
	}
	receipt, out := call(ctx, c, post(path, body), func(body []byte) (*weir.Receipt, error) {
		return apijson.ReadReceipt(body, id)
	})
	return receipt, out.err
}

// degradedLife is the lifetime of a degraded lease: the engine's default.
const degradedLife = time.Hour

// degraded is the service of degraded leases, which no server knows. Its verbs do nothing.
type degraded struct{ *Client }

// degrade returns a degraded lease.
func (c *Client) degrade(id weir.LeaseID) *weir.Lease {
	at := c.instant()
	return (&weir.Lease{
		ID: id, ReservedAt: at, Expires: at.Add(degradedLife), Degraded: true,
	}).Bind(degraded{c})
}

func (c *Client) instant() time.Time { return c.options.Now().UTC().Truncate(time.Millisecond) }

func (d degraded) live(id weir.LeaseID) (*weir.Receipt, error) {
	r, err := d.ended(id)
	r.Expires = r.At.Add(degradedLife)
	return r, err
}

func (d degraded) ended(id weir.LeaseID) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: id, At: d.instant(), Degraded: true}, nil
}

// Adjust answers that the lease lives on.
func (d degraded) Adjust(
	_ context.Context, id weir.LeaseID, _ int64, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.live(id)
}

// Extend answers that the lease lives on.
func (d degraded) Extend(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.live(id)
}

// Complete answers that the lease has ended.
func (d degraded) Complete(
	_ context.Context, id weir.LeaseID, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.ended(id)
}

// Cancel answers that the lease has ended.
func (d degraded) Cancel(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.ended(id)
}

// serverClock estimates from answers how far the server's clock is ahead of the client's, in
// milliseconds, because the server judges the time in lease IDs.
type serverClock struct {
	offset atomic.Int64
}

// learn takes note of an admission at an instant of the server's clock, between two instants of the
// client's. It changes the offset only if the admission contradicts it.
func (s *serverClock) learn(at, sent, received time.Time) {
	low, high := at.UnixMilli()-received.UnixMilli(), at.UnixMilli()-sent.UnixMilli()
	if low > high {
		return // the client's clock stepped back meanwhile
	}
	if known := s.offset.Load(); known < low || known > high {
		s.offset.Store(min(max(known, low), high))
	}
}

// leaseID returns a new ID for an instant of the client's clock.
func (s *serverClock) leaseID(now time.Time) weir.LeaseID {
	return weir.NewLeaseID(now.Add(time.Duration(s.offset.Load()) * time.Millisecond))
}

// corrections are added to the Date of the answer that refused an ID, to make the next one. A Date
// is cut to the second. The first correction is the end of that second, because a server that was
// opened in it refuses earlier IDs. The second is as far ahead as a server allows, for one whose
// clock was put back.
var corrections = [...]time.Duration{time.Second, time.Minute}

// correct returns the next ID after a refusal, counted by try from zero, or the zero ID if there is
// none.
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
