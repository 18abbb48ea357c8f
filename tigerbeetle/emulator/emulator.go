//go:build cgo

package emulator

import (
	"context"
	"math"
	"sync"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// Options configure an [Emulator]. Nil means all defaults.
type Options struct {
	// Now is the cluster's clock. Default: [time.Now].
	Now func() time.Time
	// Tick is the clock's resolution: a transfer that is due within a tick expires at the tick's
	// beginning. Default: a nanosecond, as on a cluster.
	Tick time.Duration
	// MaxEvents is how many events one call may create. Default: 8,189, as on a cluster. A cluster
	// for development holds 253.
	MaxEvents int
}

// Emulator is a TigerBeetle cluster in the process. It implements tigerbeetle.Ledger. Its methods
// may be called concurrently.
type Emulator struct {
	options Options

	// mu is locked during each call, so that calls are carried out one after the other.
	mu     sync.Mutex
	closed bool
	// last is the latest timestamp, in nanoseconds. Each event has a timestamp of its own.
	last uint64
	// accounts and order have every account, by ID and in the order of creation.
	accounts map[tb.Uint128]*tb.Account
	order    []*tb.Account
	// transfers and log have every transfer, by ID and in the order of creation. byAccount, byUser
	// and byUser64 are indexes of log: by debit and credit account, by user_data_128, and by
	// user_data_64.
	transfers map[tb.Uint128]*storedTransfer
	log       []*storedTransfer
	byAccount map[tb.Uint128][]*storedTransfer
	byUser    map[tb.Uint128][]*storedTransfer
	byUser64  map[uint64][]*storedTransfer
	// failed has the IDs that are used up because a transfer with the ID failed.
	failed map[tb.Uint128]bool
	// due has the pending transfers that expire, the earliest on top.
	due dueHeap
	// scope records how to undo the open chain; nil while no chain is open.
	scope *chainScope
	// expired has the IDs of the transfers that have expired, for tests.
	expired []tb.Uint128
}

// storedTransfer is a transfer and its state.
type storedTransfer struct {
	tb.Transfer
	state pendingState
}

// pendingState is the state of a pending transfer.
type pendingState uint8

const (
	stateNone pendingState = iota
	statePending
	statePosted
	stateVoided
	stateExpired
)

// New returns an empty cluster.
func New(o *Options) *Emulator {
	e := &Emulator{
		accounts: make(map[tb.Uint128]*tb.Account), transfers: make(map[tb.Uint128]*storedTransfer),
		failed: make(map[tb.Uint128]bool), byAccount: make(map[tb.Uint128][]*storedTransfer),
		byUser: make(map[tb.Uint128][]*storedTransfer), byUser64: make(map[uint64][]*storedTransfer),
	}
	if o != nil {
		e.options = *o
	}
	if e.options.Now == nil {
		e.options.Now = time.Now
	}
	if e.options.MaxEvents == 0 {
		e.options.MaxEvents = maxReply
	}
	if e.options.Tick == 0 {
		e.options.Tick = time.Nanosecond
	}
	return e
}

// Now returns the cluster's time.
func (e *Emulator) Now() time.Time { return e.options.Now() }

// MaxEvents returns how many events one call may create.
func (e *Emulator) MaxEvents() int { return e.options.MaxEvents }

// Close makes every further call fail.
func (e *Emulator) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// Expired returns the pending transfers that have expired, in the order of their expiry.
func (e *Emulator) Expired() []tb.Uint128 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]tb.Uint128(nil), e.expired...)
}

// Contents is a copy of what a cluster has stored.
type Contents struct {
	Accounts  []tb.Account // in the order of their creation, like the transfers
	Transfers []Transfer
	FailedIDs int // IDs of failed transfers, which cannot be used again
}

// Transfer is a transfer that was created. Pending is true until it is posted, voided, or found to
// have expired.
type Transfer struct {
	tb.Transfer
	Pending bool
}

// Contents returns what is stored, as the last call left it.
func (e *Emulator) Contents() Contents {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := Contents{
		Accounts: make([]tb.Account, len(e.order)), Transfers: make([]Transfer, len(e.log)),
		FailedIDs: len(e.failed),
	}
	for i, a := range e.order {
		c.Accounts[i] = *a
	}
	for i, t := range e.log {
		c.Transfers[i] = Transfer{t.Transfer, t.state == statePending}
	}
	return c
}

// maxReply is how many accounts or transfers an answer holds on every cluster.
const maxReply = 8189

// maxLookup returns how many IDs one call may look up: eight IDs take the space of an event.
func (e *Emulator) maxLookup() int { return min(8*e.options.MaxEvents+7, maxReply) }

// enter begins a call with a number of events, IDs or answers, and their maximum. It advances the
// clock, which never goes back, and expires the pending transfers that are due.
func (e *Emulator) enter(ctx context.Context, events, most int) error {
	switch err := ctx.Err(); {
	case err != nil:
		return err
	case e.closed:
		return tb.ErrClientClosed
	case events > most:
		return tb.ErrTooMuchData
	}
	e.last = max(e.last, uint64(e.options.Now().UnixNano()))
	e.expireDue()
	return nil
}

// create begins a call that creates, and returns the timestamp before that of its first event.
func (e *Emulator) create(ctx context.Context, events int) (uint64, error) {
	if err := e.enter(ctx, events, e.options.MaxEvents); err != nil {
		return 0, err
	}
	base := e.last
	e.last += uint64(events)
	return base, nil
}

// LookupAccounts returns the accounts that exist among the IDs.
func (e *Emulator) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	return lookup(ctx, e, ids, e.accounts, func(a *tb.Account) tb.Account { return *a })
}

// LookupTransfers returns the transfers that exist among the IDs.
func (e *Emulator) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	return lookup(ctx, e, ids, e.transfers, func(t *storedTransfer) tb.Transfer { return t.Transfer })
}

// lookup returns copies of the rows of a table that exist among the IDs.
func lookup[Row, Copy any](
	ctx context.Context, e *Emulator, ids []tb.Uint128, table map[tb.Uint128]*Row, of func(*Row) Copy,
) ([]Copy, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.enter(ctx, len(ids), e.maxLookup()); err != nil {
		return nil, err
	}
	var found []Copy
	for _, id := range ids {
		if row := table[id]; row != nil {
			found = append(found, of(row))
		}
	}
	return found, nil
}

// AccountTransfers returns the transfers of an account.
func (e *Emulator) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.enter(ctx, int(f.Limit), maxReply); err != nil {
		return nil, err
	}
	flags := f.AccountFilterFlags()
	if !validFilter(f.Limit, f.TimestampMin, f.TimestampMax) || f.Flags >= 1<<3 || f.Reserved != [58]uint8{} {
		return nil, nil
	}
	return matching(e.byAccount[f.AccountID], flags.Reversed, f.Limit, func(t *storedTransfer) (tb.Transfer, bool) {
		return t.Transfer, (flags.Debits && t.DebitAccountID == f.AccountID ||
			flags.Credits && t.CreditAccountID == f.AccountID) &&
			matchesFilter(f.UserData128, t.UserData128) && matchesFilter(f.UserData64, t.UserData64) &&
			matchesFilter(f.UserData32, t.UserData32) && matchesFilter(f.Code, t.Code) &&
			inTimeRange(t.Timestamp, f.TimestampMin, f.TimestampMax)
	}), nil
}

// QueryTransfers returns the transfers that match a filter.
func (e *Emulator) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.enter(ctx, int(f.Limit), maxReply); err != nil {
		return nil, err
	}
	if !validQuery(&f) {
		return nil, nil
	}
	list := e.log
	switch {
	case f.UserData128 != (tb.Uint128{}):
		list = e.byUser[f.UserData128]
	case f.UserData64 != 0:
		list = e.byUser64[f.UserData64]
	}
	return matching(list, f.QueryFilterFlags().Reversed, f.Limit, func(t *storedTransfer) (tb.Transfer, bool) {
		return t.Transfer, matchesFilter(f.UserData128, t.UserData128) && matchesFilter(f.UserData64, t.UserData64) &&
			matchesFilter(f.UserData32, t.UserData32) && matchesFilter(f.Code, t.Code) &&
			matchesFilter(f.Ledger, t.Ledger) && inTimeRange(t.Timestamp, f.TimestampMin, f.TimestampMax)
	}), nil
}

// QueryAccounts returns the accounts that match a filter.
func (e *Emulator) QueryAccounts(ctx context.Context, f tb.QueryFilter) ([]tb.Account, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.enter(ctx, int(f.Limit), maxReply); err != nil {
		return nil, err
	}
	if !validQuery(&f) {
		return nil, nil
	}
	return matching(e.order, f.QueryFilterFlags().Reversed, f.Limit, func(a *tb.Account) (tb.Account, bool) {
		return *a, matchesFilter(f.UserData128, a.UserData128) && matchesFilter(f.UserData64, a.UserData64) &&
			matchesFilter(f.UserData32, a.UserData32) && matchesFilter(f.Code, a.Code) &&
			matchesFilter(f.Ledger, a.Ledger) && inTimeRange(a.Timestamp, f.TimestampMin, f.TimestampMax)
	}), nil
}

// validFilter reports whether a filter is valid. A query with an invalid filter returns nothing.
func validFilter(limit uint32, from, to uint64) bool {
	return limit > 0 && from <= math.MaxInt64 && to <= math.MaxInt64 && (to == 0 || from <= to)
}

func validQuery(f *tb.QueryFilter) bool {
	return validFilter(f.Limit, f.TimestampMin, f.TimestampMax) && f.Flags < 1<<1 && f.Reserved == [6]uint8{}
}

// matching returns the elements of a list that match, at most limit of them, the newest first if
// reversed is set.
func matching[S, R any](list []*S, reversed bool, limit uint32, match func(*S) (R, bool)) []R {
	var found []R
	for i := range list {
		at := i
		if reversed {
			at = len(list) - 1 - i
		}
		if r, ok := match(list[at]); ok {
			found = append(found, r)
		}
		if len(found) == int(limit) {
			break
		}
	}
	return found
}

// matchesFilter reports whether a field of a filter is not set or equals the value.
func matchesFilter[T comparable](asked, is T) bool {
	var none T
	return asked == none || asked == is
}

func inTimeRange(t, from, to uint64) bool { return t >= from && (to == 0 || t <= to) }
