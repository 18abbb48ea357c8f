//go:build cgo

package emulator

import (
	"context"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// chainScope records what a linked chain has changed so far, so that discard can restore it.
type chainScope struct {
	accounts  map[tb.Uint128]tb.Account
	created   []tb.Uint128 // accounts
	transfers []*storedTransfer
	states    map[*storedTransfer]pendingState
}

// beginScope begins the scope of a chain.
func (e *Emulator) beginScope() {
	e.scope = &chainScope{accounts: make(map[tb.Uint128]tb.Account), states: make(map[*storedTransfer]pendingState)}
}

// discard undoes what the chain has done.
func (e *Emulator) discard() {
	s := e.scope
	e.scope = nil
	for id, a := range s.accounts {
		*e.accounts[id] = a
	}
	for t, state := range s.states {
		t.state = state
	}
	for range s.created {
		last := len(e.order) - 1
		delete(e.accounts, e.order[last].ID)
		e.order = e.order[:last]
	}
	for i := len(s.transfers) - 1; i >= 0; i-- {
		t := s.transfers[i]
		delete(e.transfers, t.ID)
		e.log = e.log[:len(e.log)-1]
		for _, account := range []tb.Uint128{t.DebitAccountID, t.CreditAccountID} {
			e.byAccount[account] = e.byAccount[account][:len(e.byAccount[account])-1]
		}
		if t.UserData128 != (tb.Uint128{}) {
			e.byUser[t.UserData128] = e.byUser[t.UserData128][:len(e.byUser[t.UserData128])-1]
		}
		if t.UserData64 != 0 {
			e.byUser64[t.UserData64] = e.byUser64[t.UserData64][:len(e.byUser64[t.UserData64])-1]
		}
	}
}

// account returns an account for changing, or nil if it does not exist. It records the account's
// former value in the scope of an open chain.
func (e *Emulator) account(id tb.Uint128) *tb.Account {
	a := e.accounts[id]
	if a != nil && e.scope != nil {
		if _, ok := e.scope.accounts[id]; !ok {
			e.scope.accounts[id] = *a
		}
	}
	return a
}

// insert adds a transfer that succeeded.
func (e *Emulator) insert(t tb.Transfer, state pendingState) *storedTransfer {
	n := &storedTransfer{t, state}
	e.transfers[t.ID] = n
	e.log = append(e.log, n)
	e.byAccount[t.DebitAccountID] = append(e.byAccount[t.DebitAccountID], n)
	e.byAccount[t.CreditAccountID] = append(e.byAccount[t.CreditAccountID], n)
	if t.UserData128 != (tb.Uint128{}) {
		e.byUser[t.UserData128] = append(e.byUser[t.UserData128], n)
	}
	if t.UserData64 != 0 {
		e.byUser64[t.UserData64] = append(e.byUser64[t.UserData64], n)
	}
	if e.scope != nil {
		e.scope.transfers = append(e.scope.transfers, n)
	}
	return n
}

// setState sets the state of a pending transfer.
func (e *Emulator) setState(t *storedTransfer, state pendingState) {
	if e.scope != nil {
		if _, ok := e.scope.states[t]; !ok {
			e.scope.states[t] = t.state
		}
	}
	t.state = state
}

// chains carries out n events in order, and undoes each linked chain that fails. The event of a
// chain that fails first keeps its status. chains calls fail to set the status of the others; open
// reports that the call does not end the chain.
func (e *Emulator) chains(n int, linked func(i int) bool, do func(i int) (ok bool), fail func(i int, open bool)) {
	begin, broken := -1, false
	for i := range n {
		open := false
		if linked(i) {
			if begin < 0 {
				begin = i
				e.beginScope()
			}
			open = i == n-1
		}
		ok := false
		switch {
		case open:
			fail(i, true)
		case broken:
			fail(i, false)
		default:
			ok = do(i)
		}
		if !ok && begin >= 0 && !broken {
			broken = true
			e.discard()
			for k := begin; k < i; k++ {
				fail(k, false)
			}
		}
		if begin >= 0 && (!linked(i) || open) {
			e.scope = nil
			begin, broken = -1, false
		}
	}
}

// CreateAccounts creates accounts.
func (e *Emulator) CreateAccounts(
	ctx context.Context, accounts []tb.Account,
) ([]tb.CreateAccountResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	base, err := e.create(ctx, len(accounts))
	if err != nil {
		return nil, err
	}
	results := make([]tb.CreateAccountResult, len(accounts))
	const linked = 1
	e.chains(len(accounts), func(i int) bool { return accounts[i].Flags&linked != 0 }, func(i int) bool {
		r := &results[i]
		r.Timestamp = base + uint64(i) + 1
		r.Status, r.Timestamp = e.createAccount(&accounts[i], r.Timestamp)
		return r.Status == tb.AccountCreated
	}, func(i int, open bool) {
		results[i] = tb.CreateAccountResult{Timestamp: base + uint64(i) + 1, Status: tb.AccountLinkedEventFailed}
		if open {
			results[i].Status = tb.AccountLinkedEventChainOpen
		}
	})
	return results, nil
}

// CreateTransfers creates transfers. The ID of a transfer that failed because of the state of its
// accounts can never be used again.
func (e *Emulator) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	base, err := e.create(ctx, len(transfers))
	if err != nil {
		return nil, err
	}
	results := make([]tb.CreateTransferResult, len(transfers))
	e.chains(len(transfers), func(i int) bool { return transfers[i].Flags&flagLinked != 0 }, func(i int) bool {
		r := &results[i]
		at := base + uint64(i) + 1
		r.Status, r.Timestamp = e.createTransfer(&transfers[i], at)
		if transient(r.Status) {
			e.failed[transfers[i].ID] = true
		}
		return r.Status == tb.TransferCreated
	}, func(i int, open bool) {
		results[i] = tb.CreateTransferResult{Timestamp: base + uint64(i) + 1, Status: tb.TransferLinkedEventFailed}
		if open {
			results[i].Status = tb.TransferLinkedEventChainOpen
		}
	})
	return results, nil
}

// transient reports whether a failure depends on the state of the accounts, so that the same
// transfer could succeed later.
func transient(s tb.CreateTransferStatus) bool {
	switch s {
	case tb.TransferDebitAccountNotFound, tb.TransferCreditAccountNotFound,
		tb.TransferPendingTransferNotFound, tb.TransferExceedsCredits, tb.TransferExceedsDebits,
		tb.TransferDebitAccountAlreadyClosed, tb.TransferCreditAccountAlreadyClosed:
		return true
	}
	return false
}

// createAccount creates one account.
func (e *Emulator) createAccount(a *tb.Account, at uint64) (tb.CreateAccountStatus, uint64) {
	var zero, most tb.Uint128
	most = tb.AmountMax
	const bounded = 1<<1 | 1<<2
	old := e.accounts[a.ID]
	switch {
	case a.Timestamp != 0:
		return tb.AccountTimestampMustBeZero, at
	case a.Reserved != 0:
		return tb.AccountReservedField, at
	case a.Flags >= 1<<6:
		return tb.AccountReservedFlag, at
	case a.ID == zero:
		return tb.AccountIDMustNotBeZero, at
	case a.ID == most:
		return tb.AccountIDMustNotBeIntMax, at
	case old != nil:
		return accountExists(a, old, at)
	case a.Flags&bounded == bounded:
		return tb.AccountFlagsAreMutuallyExclusive, at
	case a.DebitsPending != zero:
		return tb.AccountDebitsPendingMustBeZero, at
	case a.DebitsPosted != zero:
		return tb.AccountDebitsPostedMustBeZero, at
	case a.CreditsPending != zero:
		return tb.AccountCreditsPendingMustBeZero, at
	case a.CreditsPosted != zero:
		return tb.AccountCreditsPostedMustBeZero, at
	case a.Ledger == 0:
		return tb.AccountLedgerMustNotBeZero, at
	case a.Code == 0:
		return tb.AccountCodeMustNotBeZero, at
	}
	n := *a
	n.Timestamp = at
	e.accounts[n.ID] = &n
	e.order = append(e.order, &n)
	if e.scope != nil {
		e.scope.created = append(e.scope.created, n.ID)
	}
	return tb.AccountCreated, at
}

// accountExists returns how an account differs from the existing one with its ID.
func accountExists(a, old *tb.Account, at uint64) (tb.CreateAccountStatus, uint64) {
	switch {
	case a.Flags != old.Flags:
		return tb.AccountExistsWithDifferentFlags, at
	case a.UserData128 != old.UserData128:
		return tb.AccountExistsWithDifferentUserData128, at
	case a.UserData64 != old.UserData64:
		return tb.AccountExistsWithDifferentUserData64, at
	case a.UserData32 != old.UserData32:
		return tb.AccountExistsWithDifferentUserData32, at
	case a.Ledger != old.Ledger:
		return tb.AccountExistsWithDifferentLedger, at
	case a.Code != old.Code:
		return tb.AccountExistsWithDifferentCode, at
	}
	return tb.AccountExists, old.Timestamp
}
