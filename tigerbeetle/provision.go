//go:build cgo

package tigerbeetle

import (
	"context"
	"math"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// provision makes sure that the accounts of all takes exist and that their use is known. It calls
// the cluster only for limits that this process has not used yet, for a budget's new period, and
// for uncertain estimates. An uncertain estimate is left alone while chains of its limit are in
// flight, because they would make the new one uncertain again.
func (s *Store) provision(ctx context.Context, takes []*activeTake) error {
	missing, ends := s.takesToRead(takes)
	if s.clock.latestMS() >= ends {
		// The period may have ended on the cluster. A call made after its end must not be charged
		// to it.
		if err := s.askTime(ctx); err != nil {
			return err
		}
		missing, _ = s.takesToRead(takes)
	}
	if err := s.readTakes(ctx, missing); err != nil {
		return err
	}
	return s.createAccounts(ctx, missing)
}

// takesToRead returns the takes whose limits must be read from the cluster, and the earliest end of
// a budget's current period, in Unix milliseconds.
func (s *Store) takesToRead(takes []*activeTake) (missing []*activeTake, ends int64) {
	now := s.clock.nowMS()
	ends = math.MaxInt64
	for _, take := range takes {
		if take.mustRead(now) {
			missing = append(missing, take)
		}
		if take.key.kind == weir.Budget {
			ends = min(ends, take.periodEnd)
		}
	}
	return missing, ends
}

// periodEnded reports whether a budget's period ended while the call waited for an anchor.
func periodEnded(takes []*activeTake, now int64) bool {
	return slices.ContainsFunc(takes, func(s *activeTake) bool {
		return s.key.kind == weir.Budget && s.periodEnd <= now
	})
}

// readTakes reads the limits of takes from the cluster.
func (s *Store) readTakes(ctx context.Context, takes []*activeTake) error {
	states := make([]*limitState, len(takes))
	for i, take := range takes {
		states[i], take.readInCall = take.limitState, true
	}
	return s.readLimits(ctx, states)
}

// mustRead sets a budget's period and reports whether the limit must be read from the cluster.
func (s *activeTake) mustRead(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := s.accountsExist && (!s.uncertain || s.inFlight > 0)
	if s.key.kind != weir.Budget {
		return !ready
	}
	from, to := s.Limit.Period(time.UnixMilli(now))
	s.periodEnd = to.UnixMilli()
	s.period = s.periodAccountID(from.UnixMilli(), s.periodEnd)
	return !ready || !s.current(now).accountExists
}

// current returns the account of the take's period, and drops the other periods that have ended.
// s.mu is held.
func (s *activeTake) current(now int64) *periodAccount {
	s.periods = slices.DeleteFunc(s.periods, func(p periodAccount) bool {
		return p.end <= now && p.account != s.period
	})
	for i := range s.periods {
		if s.periods[i].account == s.period {
			return &s.periods[i]
		}
	}
	s.periods = append(s.periods, periodAccount{account: s.period, end: s.periodEnd})
	return &s.periods[len(s.periods)-1]
}

// createAccounts creates the accounts of takes that are not known to exist.
func (s *Store) createAccounts(ctx context.Context, takes []*activeTake) error {
	var accounts []tb.Account
	for _, take := range takes {
		accounts = take.accounts(accounts, &s.namespace)
	}
	if len(accounts) == 0 {
		return nil
	}
	if s.options.ReadOnly {
		return readOnly()
	}
	results, err := s.ledger.CreateAccounts(ctx, accounts) // fewer than the chain has events
	if err != nil {
		return client.Unavailable(err)
	}
	for i := range results {
		if st := results[i].Status; st != tb.AccountCreated && st != tb.AccountExists {
			return unexpected("create_accounts", st.String())
		}
	}
	for _, take := range takes {
		take.mu.Lock()
		take.accountsExist = true
		if take.key.kind == weir.Budget {
			take.current(0).accountExists = true
		}
		take.mu.Unlock()
	}
	return nil
}

// accounts appends the limit's accounts that are not known to exist.
func (s *activeTake) accounts(to []tb.Account, n *namespace) []tb.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := tb.Account{
		ID: s.account, UserData128: n.subjectHash(s.key.Subject), UserData64: nameHash(s.key.name),
		Ledger: n.ledger, Code: codeOf(s.key.kind), Flags: accountBounded,
	}
	switch {
	case s.key.kind == weir.Budget:
		p := s.current(0)
		if p.accountExists {
			return to
		}
		account.ID, account.UserData32 = p.account, uint32(p.end/1000)
	case s.accountsExist:
		return to
	case s.key.kind == weir.Bucket:
		spent := account
		spent.ID, spent.Code, spent.Flags = s.spent, codeSpent, 0
		to = append(to, spent)
	}
	return append(to, account)
}

// fund adds the transfer that funds an account, unless the account is known to be funded. If several
// servers send it, it has the same ID each time, so the cluster funds the account once.
func (s *Store) fund(ch *chain, take *activeTake, holding int) {
	take.mu.Lock()
	defer take.mu.Unlock()
	account, funds := take.account, fundUnits
	funded := &take.funded
	switch take.key.kind {
	case weir.Bucket:
		funds = fundMilli
	case weir.Budget:
		p := take.current(0)
		account, funded = p.account, &p.funded
	}
	if *funded {
		return
	}
	ch.addUnlinked(&tb.Transfer{
		ID: fundID(account), DebitAccountID: s.namespace.vault, CreditAccountID: account,
		Amount: tb.ToUint128(funds), Code: codeFund,
	}, holding)
}

// markFunded records which accounts a call has funded.
func markFunded(ch *chain, takes []*activeTake, results []tb.CreateTransferResult) {
	for i := range min(ch.linked, len(results)) {
		if st := results[i].Status; st != tb.TransferCreated && st != tb.TransferExists {
			continue
		}
		take := takes[ch.events[i].holding]
		take.mu.Lock()
		if take.key.kind == weir.Budget {
			take.current(0).funded = true
		} else {
			take.funded = true
		}
		take.mu.Unlock()
	}
}

// reset makes the next call read the limit and create its accounts again.
func (s *limitState) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accountsExist, s.funded, s.bucket, s.expiring, s.periods = false, false, bucketEstimate{}, expiringEstimate{}, nil
}
