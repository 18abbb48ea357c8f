//go:build cgo

package client

import (
	"context"
	"errors"
	"sync/atomic"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// CreateAccounts creates accounts, in several calls if they do not fit one. Linked accounts stay
// together.
func (c *Client) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	var results []tb.CreateAccountResult
	for len(accounts) > 0 {
		n := min(len(accounts), c.MaxEvents())
		for n > 1 && n < len(accounts) && accounts[n-1].Flags&accountLinked != 0 {
			n--
		}
		part := accounts[:n]
		some, err := call(ctx, c, func(native tb.Client) ([]tb.CreateAccountResult, error) {
			return native.CreateAccounts(part)
		})
		if errors.Is(err, tb.ErrTooMuchData) && n > 1 {
			c.lowerMaxEvents(n)
			continue
		}
		if err != nil {
			return nil, oversize(err, n, c)
		}
		results, accounts = append(results, some...), accounts[n:]
	}
	return results, nil
}

// CreateTransfers creates transfers in one call.
func (c *Client) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	if len(transfers) == 0 {
		return nil, nil
	}
	results, err := call(ctx, c, func(native tb.Client) ([]tb.CreateTransferResult, error) {
		return native.CreateTransfers(transfers)
	})
	if errors.Is(err, tb.ErrTooMuchData) {
		c.lowerMaxEvents(len(transfers))
	}
	return results, oversize(err, len(transfers), c)
}

// LookupAccounts returns the accounts that exist among the IDs.
func (c *Client) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	return lookup(ctx, c, ids, tb.Client.LookupAccounts)
}

// LookupTransfers returns the transfers that exist among the IDs.
func (c *Client) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	return lookup(ctx, c, ids, tb.Client.LookupTransfers)
}

// lookup looks IDs up, in as many calls as they need.
func lookup[R any](
	ctx context.Context, c *Client, ids []tb.Uint128, ask func(tb.Client, []tb.Uint128) ([]R, error),
) ([]R, error) {
	var found []R
	for len(ids) > 0 {
		n := min(len(ids), int(c.lookups.Load()))
		part := ids[:n]
		some, err := call(ctx, c, func(native tb.Client) ([]R, error) { return ask(native, part) })
		if errors.Is(err, tb.ErrTooMuchData) && n > 1 {
			lowerTo(&c.lookups, n/2)
			continue
		}
		if err != nil {
			return nil, oversize(err, n, c)
		}
		found, ids = append(found, some...), ids[n:]
	}
	return found, nil
}

// AccountTransfers returns the transfers of an account, at most as many as an answer holds.
func (c *Client) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	f.Limit = min(f.Limit, maxEvents)
	return call(ctx, c, func(native tb.Client) ([]tb.Transfer, error) { return native.GetAccountTransfers(f) })
}

// QueryAccounts returns the accounts that match a filter, at most as many as an answer holds.
func (c *Client) QueryAccounts(ctx context.Context, f tb.QueryFilter) ([]tb.Account, error) {
	f.Limit = min(f.Limit, maxEvents)
	return call(ctx, c, func(native tb.Client) ([]tb.Account, error) { return native.QueryAccounts(f) })
}

// QueryTransfers returns the transfers that match a filter, at most as many as an answer holds.
func (c *Client) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	f.Limit = min(f.Limit, maxEvents)
	return call(ctx, c, func(native tb.Client) ([]tb.Transfer, error) { return native.QueryTransfers(f) })
}

// accountLinked is the flag of an account that succeeds or fails with the next one.
const accountLinked = 1 << 0

// minEvents is how many events a call holds on a server for development, which takes the fewest.
const minEvents = 253

// lowerMaxEvents lowers the known maximum after a number of events did not fit one call: the server
// was restarted with a smaller one.
func (c *Client) lowerMaxEvents(events int) {
	if events <= minEvents {
		lowerTo(&c.events, events-1)
		return
	}
	lowerTo(&c.events, max(events/2, minEvents))
}

// lowerTo lowers n to most, unless it is lower already.
func lowerTo(n *atomic.Int64, most int) {
	for {
		old := n.Load()
		if old <= int64(most) || n.CompareAndSwap(old, int64(max(most, 1))) {
			return
		}
	}
}

// oversize returns the error for a call that was not sent because it is too large.
func oversize(err error, events int, c *Client) error {
	if errors.Is(err, tb.ErrTooMuchData) {
		return TooLarge(events, c.MaxEvents())
	}
	return err
}
