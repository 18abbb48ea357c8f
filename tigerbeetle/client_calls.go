//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// CreateAccounts creates accounts, in several calls where they do not fit one. Accounts that are
// linked stay together.
func (c *client) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	var results []tb.CreateAccountResult
	for len(accounts) > 0 {
		n := min(len(accounts), c.MaxEvents())
		for n > 1 && n < len(accounts) && accounts[n-1].Flags&flagLinked != 0 {
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
func (c *client) CreateTransfers(
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

// LookupAccounts returns those of the accounts that exist.
func (c *client) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	return lookup(ctx, c, ids, tb.Client.LookupAccounts)
}

// LookupTransfers returns those of the transfers that exist.
func (c *client) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	return lookup(ctx, c, ids, tb.Client.LookupTransfers)
}

// lookup asks for what IDs name, in as many calls as they need.
func lookup[R any](
	ctx context.Context, c *client, ids []tb.Uint128, ask func(tb.Client, []tb.Uint128) ([]R, error),
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

// AccountTransfers returns the transfers of an account; at most as many as an answer holds.
func (c *client) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	f.Limit = min(f.Limit, maxEvents)
	return call(ctx, c, func(native tb.Client) ([]tb.Transfer, error) { return native.GetAccountTransfers(f) })
}

// QueryAccounts returns the accounts that have what a filter names; at most as many as an answer
// holds.
func (c *client) QueryAccounts(ctx context.Context, f tb.QueryFilter) ([]tb.Account, error) {
	f.Limit = min(f.Limit, maxEvents)
	return call(ctx, c, func(native tb.Client) ([]tb.Account, error) { return native.QueryAccounts(f) })
}

// QueryTransfers returns the transfers that have what a filter names; at most as many as an answer
// holds.
func (c *client) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	f.Limit = min(f.Limit, maxEvents)
	return call(ctx, c, func(native tb.Client) ([]tb.Transfer, error) { return native.QueryTransfers(f) })
}
