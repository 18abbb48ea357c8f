//go:build cgo

package tigerbeetle

import (
	"context"
	"fmt"
	"sync"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// usageTimeout bounds the calls of one write. After it the outcome of the last one is unknown,
// and the next write sends it again.
const usageTimeout = 5 * time.Second

// usageDue writes usage when the timer fires, and tries again a minute later if that fails.
func (s *Store) usageDue(life context.Context) {
	u := &s.usage
	u.mu.Lock()
	u.armed = false
	u.mu.Unlock()
	if s.enter(true) != nil {
		return // Close writes what is left
	}
	defer s.exit()
	ctx, cancel := context.WithTimeout(life, usageTimeout)
	defer cancel()
	if err := s.writeUsage(ctx); err != nil {
		s.options.OnError(fmt.Errorf("weir: write usage, to be tried again: %w", err))
	}
}

// closeWrites gives the withdrawals of abandoned reservations, and at the same time a write of
// what is left, closeTimeout to finish. Then it writes what the withdrawals have given back.
func (s *Store) closeWrites() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var writing sync.WaitGroup
	writing.Go(func() { _ = s.writeUsage(ctx) }) // it is tried again below
	s.closeAbandoned()
	writing.Wait()
	if err := s.writeUsage(ctx); err != nil {
		s.options.OnError(fmt.Errorf("weir: the usage since the last write is lost: %w", err))
	}
}

// writeUsage writes the sums. Calls without an answer from earlier writes are sent first, with
// the same IDs. If it returns an error, everything that is not known to be written is kept.
func (s *Store) writeUsage(ctx context.Context) error {
	u := &s.usage
	u.writing.Lock()
	defer u.writing.Unlock()
	oldest, err := s.writeAll(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.behind = len(u.unsent) > 0; err != nil && !oldest.IsZero() {
		u.oldest = oldest
	}
	u.arm()
	return err
}

// writeAll is writeUsage for callers that hold u.writing. It returns the time of the first call
// that was not written before.
func (s *Store) writeAll(ctx context.Context) (oldest time.Time, err error) {
	u := &s.usage
	if err := s.resolveUnknown(ctx); err != nil {
		return oldest, err
	}
	u.mu.Lock()
	oldest = u.oldest
	u.mu.Unlock()
	if err := s.sendUsage(ctx); err != nil {
		return oldest, err
	}
	u.unsent = s.usageCalls()
	return oldest, s.sendUsage(ctx)
}

// sendUsage sends the calls of unsent until one fails.
func (s *Store) sendUsage(ctx context.Context) error {
	u := &s.usage
	for len(u.unsent) > 0 {
		results, err := s.ledger.CreateTransfers(ctx, u.unsent[0])
		if err != nil {
			return client.Unavailable(err)
		}
		if len(results) != len(u.unsent[0]) {
			return unexpected("create_transfers", "too few results")
		}
		s.usageAnswered(u.unsent[0], results)
		u.unsent = u.unsent[1:]
	}
	return nil
}

// usageAnswered puts back what the cluster has refused. A transfer that exists was created by an
// earlier try.
func (s *Store) usageAnswered(sent []tb.Transfer, results []tb.CreateTransferResult) {
	var refused []usageChange
	for i := range results {
		if st := results[i].Status; st != tb.TransferCreated && st != tb.TransferExists {
			if len(refused) == 0 {
				s.options.OnError(unexpected("create_transfers", st.String()))
			}
			refused = append(refused, s.namespace.usageOf(&sent[i]))
		}
	}
	if len(refused) > 0 {
		s.usage.mu.Lock()
		defer s.usage.mu.Unlock()
		s.usage.addLocked(time.UnixMilli(s.clock.nowMS()), refused)
	}
}

// usageCalls takes the sums and returns the calls that write them.
func (s *Store) usageCalls() [][]tb.Transfer {
	u := &s.usage
	now := time.UnixMilli(s.clock.nowMS())
	u.mu.Lock()
	sums, full := u.sums, u.full
	u.sums, u.full = make(map[usageKey]usageSum), nil
	if len(u.undecided(now, 1)) == 0 {
		u.oldest = time.Time{}
	}
	u.mu.Unlock()
	all := make([]tb.Transfer, 0, len(sums)+len(full))
	for key, sum := range sums {
		all = s.appendUsage(all, now, key, sum)
	}
	for i := range full {
		all = s.appendUsage(all, now, full[i].usageKey, full[i].usageSum)
	}
	var calls [][]tb.Transfer
	for most := s.ledger.MaxEvents(); len(all) > 0; {
		n := min(most, len(all))
		calls, all = append(calls, all[:n:n]), all[n:]
	}
	return calls
}

// appendUsage appends the transfers that record a sum.
func (s *Store) appendUsage(
	to []tb.Transfer, now time.Time, key usageKey, sum usageSum,
) []tb.Transfer {
	n := &s.namespace
	record := tb.Transfer{
		DebitAccountID: n.register, CreditAccountID: n.usage, Ledger: n.ledger,
		UserData128: uint128.Number{Hi: key.name.resource, Lo: key.name.limit}.Uint128(),
		UserData64:  key.name.entity, UserData32: key.hour,
	}
	add := func(t tb.Transfer, code uint16, amount uint128.Number) {
		t.ID, t.Code, t.Amount = leaseNumber(weir.NewLeaseID(now)), code, amount.Uint128()
		to = append(to, t)
	}
	if sum.overdrawn > 0 {
		add(record, codeOverdrawn, uint128.Number{Lo: uint64(sum.overdrawn)})
	}
	if sum.units == 0 && sum.events == 0 {
		return to
	}
	units := uint64(sum.units)
	if sum.units < 0 {
		record.DebitAccountID, record.CreditAccountID = n.usage, n.register
		units = -units
	}
	add(record, codeUsage, uint128.Number{Hi: uint64(sum.events), Lo: units})
	return to
}

// usageOf returns what a record of usage says.
func (n *namespace) usageOf(t *tb.Transfer) usageChange {
	amount, about := uint128.Of(t.Amount), uint128.Of(t.UserData128)
	c := usageChange{usageKey: usageKey{usageName{t.UserData64, about.Hi, about.Lo}, t.UserData32}}
	switch {
	case t.Code == codeOverdrawn:
		c.overdrawn = int64(amount.Lo)
	case t.CreditAccountID == n.usage:
		c.units, c.events = int64(amount.Lo), int64(amount.Hi)
	default:
		c.units, c.events = int64(-amount.Lo), int64(amount.Hi)
	}
	return c
}

// resolveUnknown asks the cluster which of the calls of unknown outcome were carried out, and
// counts those.
func (s *Store) resolveUnknown(ctx context.Context) error {
	u := &s.usage
	now := time.UnixMilli(s.clock.nowMS())
	u.mu.Lock()
	ids := u.undecided(now, s.ledger.MaxEvents())
	u.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	found, err := s.ledger.LookupTransfers(ctx, ids)
	if err != nil {
		return client.Unavailable(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if use := u.unknown[id]; use != nil {
			use.lookedUp = true
		}
	}
	for i := range found {
		use := u.unknown[found[i].ID]
		if use == nil || use.decided { // the call is being repeated
			continue
		}
		if use.decided = true; use.matches(&found[i]) {
			u.addLocked(now, use.changes)
		}
	}
	return nil
}

// undecided returns the IDs of the headers to look up, and forgets the calls that are old. u.mu
// is held.
func (u *usageLog) undecided(now time.Time, most int) []tb.Uint128 {
	var ids []tb.Uint128
	for id, use := range u.unknown {
		if (use.lookedUp || use.decided) && now.Sub(use.at) > unknownFor {
			delete(u.unknown, id)
		} else if !use.decided && len(ids) < most {
			ids = append(ids, id)
		}
	}
	return ids
}
