//go:build cgo

package tigerbeetle

import (
	"context"
	"math"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// provision makes sure that the accounts of all seats exist and that what is in use is known. It
// asks the cluster only about limits that this process has not used yet, about a budget's new
// period, and about what is in doubt while nothing is on its way that would leave it so.
func (s *Store) provision(ctx context.Context, seats []seat) error {
	missing, ends := s.needing(seats)
	if s.clock.latest() >= ends {
		// A call that comes once a period is over must not be charged to it.
		if err := s.askTime(ctx); err != nil {
			return err
		}
		missing, _ = s.needing(seats)
	}
	if err := s.readSeats(ctx, missing); err != nil {
		return err
	}
	return s.createAccounts(ctx, missing)
}

// needing returns the seats about which the cluster must be asked, and when the first of the
// budgets' periods ends.
func (s *Store) needing(seats []seat) (missing []*seat, ends int64) {
	now := s.clock.ms()
	ends = math.MaxInt64
	for i := range seats {
		if seats[i].needs(now) {
			missing = append(missing, &seats[i])
		}
		if seats[i].key.kind == weir.Budget {
			ends = min(ends, seats[i].periodEnd)
		}
	}
	return missing, ends
}

// overdue reports whether a budget's period has ended while the call waited for its turn.
func overdue(seats []*seat, now int64) bool {
	return slices.ContainsFunc(seats, func(s *seat) bool {
		return s.key.kind == weir.Budget && s.periodEnd <= now
	})
}

// readSeats asks the cluster what is in use on the limits of seats.
func (s *Store) readSeats(ctx context.Context, seats []*seat) error {
	spots := make([]*spot, len(seats))
	for i, seat := range seats {
		spots[i], seat.asked = seat.spot, true
	}
	return s.readSpots(ctx, spots)
}

// needs finds the budget's period and reports whether the cluster must be asked.
func (s *seat) needs(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := s.ready && (!s.doubt || s.flights > 0)
	if s.key.kind != weir.Budget {
		return !ready
	}
	from, to := s.take.Limit.Period(time.UnixMilli(now))
	s.periodEnd = to.UnixMilli()
	s.period = s.periodAccount(from.UnixMilli(), s.periodEnd)
	return !ready || !s.current(now).ready
}

// current is the seat's period among those that have not ended. The spot is locked.
func (s *seat) current(now int64) *period {
	s.periods = slices.DeleteFunc(s.periods, func(p period) bool {
		return p.end <= now && p.account != s.period
	})
	for i := range s.periods {
		if s.periods[i].account == s.period {
			return &s.periods[i]
		}
	}
	s.periods = append(s.periods, period{account: s.period, end: s.periodEnd})
	return &s.periods[len(s.periods)-1]
}

// createAccounts makes the accounts that do not exist.
func (s *Store) createAccounts(ctx context.Context, seats []*seat) error {
	var accounts []tb.Account
	for _, seat := range seats {
		accounts = seat.accounts(accounts, &s.namespace)
	}
	if len(accounts) == 0 {
		return nil
	}
	if s.options.ReadOnly {
		return readOnly()
	}
	results, err := s.ledger.CreateAccounts(ctx, accounts) // fewer than the chain's events
	if err != nil {
		return unavailable(err)
	}
	for i := range results {
		if st := results[i].Status; st != tb.AccountCreated && st != tb.AccountExists {
			return unexpected("create_accounts", st.String())
		}
	}
	for _, seat := range seats {
		seat.mu.Lock()
		seat.ready = true
		if seat.key.kind == weir.Budget {
			seat.current(0).ready = true
		}
		seat.mu.Unlock()
	}
	return nil
}

// accounts appends those of the limit that are not known to exist.
func (s *seat) accounts(to []tb.Account, n *namespace) []tb.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := tb.Account{
		ID: s.limit, UserData128: n.subjectHash(s.key.Subject), UserData64: nameHash(s.key.name),
		Ledger: n.ledger, Code: codeOf(s.key.kind), Flags: accountBounded,
	}
	switch {
	case s.key.kind == weir.Budget:
		p := s.current(0)
		if p.ready {
			return to
		}
		account.ID, account.UserData32 = p.account, uint32(p.end/1000)
	case s.ready:
		return to
	case s.key.kind == weir.Bucket:
		spent := account
		spent.ID, spent.Code, spent.Flags = s.spent, codeSpent, 0
		to = append(to, spent)
	}
	return append(to, account)
}

// fund adds the transfer that funds an account which may have none: whoever is first does.
func (s *Store) fund(ch *chain, seat *seat, holding int) {
	seat.mu.Lock()
	defer seat.mu.Unlock()
	account, funds := seat.limit, fundUnits
	funded := &seat.funded
	switch seat.key.kind {
	case weir.Bucket:
		funds = fundMilli
	case weir.Budget:
		p := seat.current(0)
		account, funded = p.account, &p.funded
	}
	if *funded {
		return
	}
	ch.before(&tb.Transfer{
		ID: odd(fundID(account)), DebitAccountID: s.namespace.vault, CreditAccountID: account,
		Amount: tb.ToUint128(funds), Code: codeFund,
	}, holding)
}

// fundedAll notes which accounts a call has funded.
func fundedAll(ch *chain, seats []seat, results []tb.CreateTransferResult) {
	for i := range min(ch.linked, len(results)) {
		if st := results[i].Status; st != tb.TransferCreated && st != tb.TransferExists {
			continue
		}
		seat := &seats[ch.events[i].holding]
		seat.mu.Lock()
		if seat.key.kind == weir.Budget {
			seat.current(0).funded = true
		} else {
			seat.funded = true
		}
		seat.mu.Unlock()
	}
}

// forget makes the next call ask for the accounts again.
func (s *spot) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.funded, s.bucket, s.holds, s.periods = false, false, bucketKnown{}, holdsKnown{}, nil
}
