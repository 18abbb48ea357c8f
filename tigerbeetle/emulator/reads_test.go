//go:build cgo

package emulator

import (
	"errors"
	"fmt"
	"math"
	"slices"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// found is the answer to a read.
type found[T comparable] struct {
	list []T
	err  error
}

func answered[T comparable](list []T, err error) found[T] { return found[T]{list, err} }

// same compares the answers of the emulator and the server to a read.
func same[T comparable](c *comparison, what string, got, want found[T]) {
	c.t.Helper()
	c.reads++
	c.compared += len(want.list)
	if !errors.Is(got.err, want.err) || got.err != nil && want.err == nil {
		c.fatal("%s: got %v, want %v", what, got.err, want.err)
	}
	if len(got.list) != len(want.list) {
		c.fatal("%s: got %d, want %d", what, len(got.list), len(want.list))
	}
	for i := range got.list {
		if got.list[i] != want.list[i] {
			c.fatal("%s: number %d is\ngot  %+v,\nwant %+v", what, i, got.list[i], want.list[i])
		}
	}
}

// settled compares all accounts of this round and some of earlier rounds, and all transfers from an
// instant on.
func (c *comparison) settled(since uint64) {
	c.t.Helper()
	ids := slices.Clone(c.older)
	for i := range c.accounts {
		ids = append(ids, c.accounts[i].ID)
	}
	c.lookupAccounts(ids)
	for from := since; from != 0; {
		page := c.queryTransfers(tb.QueryFilter{Ledger: c.ledger, TimestampMin: from, Limit: 1000})
		from = 0
		if len(page) == 1000 {
			from = page[len(page)-1].Timestamp + 1
		}
	}
}

// read makes one call that reads.
func (c *comparison) read() {
	c.t.Helper()
	switch c.IntN(5) {
	case 0:
		ids := []tb.Uint128{c.account(), c.account(), c.account()}
		c.lookupAccounts(append(ids, ids[0]))
	case 1:
		ids := []tb.Uint128{c.id(1 << 42)}
		for range c.IntN(40) {
			ids = append(ids, c.past[c.IntN(len(c.past))].ID)
		}
		c.lookupTransfers(ids)
	case 2:
		c.accountTransfers(c.accountFilter())
	case 3:
		c.queryTransfers(c.queryFilter())
	default:
		c.queryAccounts(c.queryFilter())
	}
}

// between returns a range of timestamps, mostly an open one.
func (c *comparison) between() (from, to uint64) {
	switch c.odds(6, 2, 2, 1, 1) {
	case 1:
		from = c.clock - c.Uint64N(3_000_000_000)
	case 2:
		to = c.clock - c.Uint64N(3_000_000_000)
	case 3:
		from, to = c.clock, c.clock-1
	case 4:
		from = one[uint64](c.dice, 0, math.MaxInt64, 1<<63, math.MaxUint64)
		to = one[uint64](c.dice, 1<<63, math.MaxInt64)
	}
	return from, to
}

func (c *comparison) queryFilter() tb.QueryFilter {
	f := tb.QueryFilter{
		Ledger: c.ledger, Limit: one[uint32](c.dice, 0, 1, 7, 100, 8189, 8190), Flags: uint32(c.IntN(2)),
	}
	f.TimestampMin, f.TimestampMax = c.between()
	if c.oneIn(2) {
		f.UserData128 = tb.ToUint128(c.Uint64N(4))
	}
	if c.oneIn(3) {
		f.UserData64 = c.Uint64N(4)
	}
	if c.oneIn(3) {
		f.UserData32 = uint32(c.IntN(4))
	}
	if c.oneIn(3) {
		f.Code = uint16(c.IntN(4))
	}
	if c.oneIn(12) {
		f.Flags |= 1 << (1 + c.IntN(31))
	}
	if c.oneIn(12) {
		f.Reserved[c.IntN(len(f.Reserved))] = 1
	}
	return f
}

func (c *comparison) accountFilter() tb.AccountFilter {
	q := c.queryFilter()
	f := tb.AccountFilter{
		AccountID: c.account(), UserData128: q.UserData128, UserData64: q.UserData64, UserData32: q.UserData32,
		Code: q.Code, TimestampMin: q.TimestampMin, TimestampMax: q.TimestampMax, Limit: q.Limit,
		Flags: uint32(c.IntN(8)),
	}
	if c.oneIn(12) {
		f.AccountID = one(c.dice, tb.Uint128{}, tb.AmountMax)
	}
	if c.oneIn(12) {
		f.Flags |= 1 << (3 + c.IntN(29))
	}
	if c.oneIn(12) {
		f.Reserved[c.IntN(len(f.Reserved))] = 1
	}
	return f
}

func (c *comparison) lookupAccounts(ids []tb.Uint128) {
	c.t.Helper()
	c.calm()
	want := answered(c.server.LookupAccounts(ids))
	got := answered(c.emulator.LookupAccounts(c.ctx, ids))
	same(c, fmt.Sprintf("lookup of %d accounts", len(ids)), got, want)
}

func (c *comparison) lookupTransfers(ids []tb.Uint128) {
	c.t.Helper()
	c.calm()
	want := answered(c.server.LookupTransfers(ids))
	got := answered(c.emulator.LookupTransfers(c.ctx, ids))
	same(c, fmt.Sprintf("lookup of %d transfers", len(ids)), got, want)
}

func (c *comparison) accountTransfers(f tb.AccountFilter) {
	c.t.Helper()
	c.calm()
	want := answered(c.server.GetAccountTransfers(f))
	got := answered(c.emulator.AccountTransfers(c.ctx, f))
	same(c, fmt.Sprintf("transfers of an account, by %+v", f), got, want)
}

func (c *comparison) queryTransfers(f tb.QueryFilter) []tb.Transfer {
	c.t.Helper()
	c.calm()
	want := answered(c.server.QueryTransfers(f))
	got := answered(c.emulator.QueryTransfers(c.ctx, f))
	same(c, fmt.Sprintf("transfers by %+v", f), got, want)
	return want.list
}

func (c *comparison) queryAccounts(f tb.QueryFilter) {
	c.t.Helper()
	c.calm()
	want := answered(c.server.QueryAccounts(f))
	got := answered(c.emulator.QueryAccounts(c.ctx, f))
	same(c, fmt.Sprintf("accounts by %+v", f), got, want)
}

// sizes compares calls with no events, with the most that a call holds, and with one more.
func (c *comparison) sizes() {
	most := c.emulator.MaxEvents()
	for _, n := range []int{0, 1, most, most + 1} {
		bad := make([]tb.Transfer, n)
		for i := range bad {
			bad[i].Timestamp = 1
		}
		want := answered(c.server.CreateTransfers(bad))
		if n > 0 && want.err == nil {
			c.hear(want.list[0].Timestamp - 1)
		}
		got := answered(c.emulator.CreateTransfers(c.ctx, bad))
		same(c, fmt.Sprintf("%d transfers", n), got, want)
	}
	for _, n := range []int{0, most + 1, 8*most + 7, 8*most + 8, 8189, 8190} {
		ids := make([]tb.Uint128, n)
		c.lookupAccounts(ids)
		c.lookupTransfers(ids)
	}
	debits := tb.AccountFilterFlags{Debits: true}.ToUint32()
	for _, limit := range []uint32{uint32(most), uint32(most) + 1, 8189, 8190, math.MaxUint32} {
		c.queryTransfers(tb.QueryFilter{Ledger: c.ledger, Limit: limit})
		c.queryAccounts(tb.QueryFilter{Ledger: c.ledger, Limit: limit})
		c.accountTransfers(tb.AccountFilter{AccountID: c.id(1), Limit: limit, Flags: debits})
	}
	c.probe()
}
