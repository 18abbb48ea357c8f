//go:build cgo

package tigerbeetle

import (
	"context"
	"math"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

const (
	filterDebits   = 1 << 0
	filterReversed = 1 << 2

	queryReversed = 1 << 0
	// periodsRead is how many of a budget's periods are looked at, the newest.
	periodsRead = 64
)

// readSpot asks the cluster what is in use on a limit, by one look-up and for a bucket or a budget one
// query.
func (s *Store) readSpot(ctx context.Context, sp *spot) error {
	defer sp.reading()()
	if sp.key.kind == weir.Budget {
		return s.readBudget(ctx, sp)
	}
	var last *anchor
	if sp.key.kind == weir.Bucket {
		var err error
		if last, err = s.lastAnchor(ctx, sp); err != nil {
			return err
		}
	}
	accounts, err := s.ledger.LookupAccounts(ctx, []tb.Uint128{sp.limit, sp.spent})
	if err != nil {
		return unavailable(err)
	}
	now := s.clock.ms()
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if len(accounts) == 0 || sp.key.kind == weir.Bucket && len(accounts) < 2 {
		sp.ready = false
		return nil
	}
	sp.ready, sp.funded = true, low(accounts[0].CreditsPosted) > 0
	if sp.key.kind != weir.Bucket {
		sp.holds.expire(now)
		sp.holds.others = max(clamp(low(accounts[0].DebitsPending))-sp.holds.total, 0)
		return nil
	}
	if last != nil {
		sp.bucket.anchor = *last
		sp.bucket.balance = balance(&accounts[1], last.rate.capacity)
	}
	return nil
}

// reading begins to ask the cluster, and returns what ends it.
func (s *spot) reading() func() {
	s.mu.Lock()
	flights, begun := s.flights, s.begun
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.doubt = flights > 0 || s.begun != begun
		s.mu.Unlock()
	}
}

// fly notes that a chain is on its way to the spots of seats, or that it is back.
func fly(seats []*seat, n int64) {
	for _, seat := range seats {
		seat.mu.Lock()
		seat.flights += n
		if n > 0 {
			seat.begun++
		}
		seat.mu.Unlock()
	}
}

// balance is that of a bucket, in milli-units, by the account of what is spent.
func balance(spent *tb.Account, capacity int64) int64 {
	return capacity*1000 - int64(low(spent.CreditsPosted)-low(spent.DebitsPosted))
}

func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// lastAnchor is the latest anchor of a bucket, or nil.
func (s *Store) lastAnchor(ctx context.Context, sp *spot) (*anchor, error) {
	found, err := s.ledger.AccountTransfers(ctx, tb.AccountFilter{
		AccountID: sp.spent, Code: codeRefill, Limit: 1, Flags: filterDebits | filterReversed,
	})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // A bucket that was never used has no anchor.
	}
	a := readAnchor(&found[0])
	return &a, nil
}

// readBudget asks for the periods of a budget that have not ended.
func (s *Store) readBudget(ctx context.Context, sp *spot) error {
	accounts, err := s.periodsOf(ctx, sp)
	if err != nil {
		return err
	}
	now := s.clock.ms()
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.periods = sp.periods[:0]
	for i := range accounts {
		a := &accounts[i]
		if end := int64(a.UserData32) * 1000; end > now {
			sp.periods = append(sp.periods, period{
				account: a.ID, end: end, used: usedOf(a), ready: true, funded: low(a.CreditsPosted) > 0,
			})
		}
	}
	sp.ready = true
	return nil
}

// periodsOf are the accounts of a budget's latest periods.
func (s *Store) periodsOf(ctx context.Context, sp *spot) ([]tb.Account, error) {
	if sp.key.Entity == "" {
		accounts, err := s.ledger.LookupAccounts(ctx, []tb.Uint128{sp.limit})
		if err != nil {
			return nil, unavailable(err)
		}
		return accounts, nil
	}
	accounts, err := s.ledger.QueryAccounts(ctx, tb.QueryFilter{
		UserData128: s.namespace.subjectHash(sp.key.Subject), UserData64: nameHash(sp.key.name),
		Ledger: s.namespace.ledger, Code: codeBudget, Limit: periodsRead, Flags: queryReversed,
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return accounts, nil
}

// usedOf is what is in use on an account that was funded with units.
func usedOf(a *tb.Account) int64 {
	credits, debits := low(a.CreditsPosted), low(a.DebitsPosted)
	if credits < fundUnits {
		return 0
	}
	return int64(debits - (credits - fundUnits))
}

// readHolds asks for the ends of holds that only others know, where a retry-after needs them. One query
// gets as many transfers as a call has; where that is not enough, the retry-after is a bound.
func (s *Store) readHolds(
	ctx context.Context, now int64, sp *spot, l *weir.Limit, need int64,
) error {
	if l.Kind != weir.Window && l.Kind != weir.Concurrency {
		return nil
	}
	sp.mu.Lock()
	_, bound := sp.freeAt(now, need, l.Capacity)
	sp.mu.Unlock()
	if !bound {
		return nil
	}
	most := uint32(s.ledger.MaxEvents())
	found, err := s.ledger.AccountTransfers(ctx, tb.AccountFilter{
		AccountID: sp.limit, Limit: most, Flags: filterDebits | filterReversed,
	})
	if err != nil {
		return unavailable(err)
	}
	sp.mu.Lock()
	defer sp.mu.Unlock()
	held := sp.holds.total + sp.holds.others
	sp.holds = holdsOf(found, now)
	sp.holds.others = 0
	if len(found) == int(most) {
		sp.holds.others = max(held-sp.holds.total, 0)
	}
	return nil
}

// holdsOf are the holds that have not ended among an account's transfers, the newest first.
func holdsOf(found []tb.Transfer, now int64) holdsKnown {
	var h holdsKnown
	resolved := make(map[tb.Uint128]bool)
	for i := range found {
		t := &found[i]
		if t.Flags&(flagVoid|flagPost) != 0 {
			resolved[t.PendingID] = true
			continue
		}
		if t.Flags&flagPending == 0 || t.Timeout == 0 || resolved[t.ID] {
			continue
		}
		if until := instant(t.Timestamp) + int64(t.Timeout)*1000; until > now {
			h.add(until, clamp(low(t.Amount)))
		}
	}
	return h
}
