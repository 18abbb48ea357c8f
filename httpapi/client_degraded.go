package httpapi

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// degradedLife is how long a lease lives that no server knows: as long as a limiter's by default.
const degradedLife = time.Hour

// degraded is the service of leases that no server knows.
type degraded struct{ *Client }

// degrade makes a lease whose verbs do nothing.
func (c *Client) degrade(id weir.LeaseID) *weir.Lease {
	at := c.instant()
	return (&weir.Lease{
		ID: id, ReservedAt: at, Expires: at.Add(degradedLife), Degraded: true,
	}).Bind(degraded{c})
}

func (c *Client) instant() time.Time { return c.options.Now().UTC().Truncate(time.Millisecond) }

func (d degraded) live(id weir.LeaseID) (*weir.Receipt, error) {
	r, err := d.over(id)
	r.Expires = r.At.Add(degradedLife)
	return r, err
}

func (d degraded) over(id weir.LeaseID) (*weir.Receipt, error) {
	return &weir.Receipt{LeaseID: id, At: d.instant(), Degraded: true}, nil
}

// Adjust does nothing.
func (d degraded) Adjust(
	_ context.Context, id weir.LeaseID, _ int64, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.live(id)
}

// Extend does nothing.
func (d degraded) Extend(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.live(id)
}

// Complete does nothing.
func (d degraded) Complete(
	_ context.Context, id weir.LeaseID, _ []weir.Costs,
) (*weir.Receipt, error) {
	return d.over(id)
}

// Cancel does nothing.
func (d degraded) Cancel(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	return d.over(id)
}
