//go:build cgo

package emulator

import (
	"math"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

const (
	flagLinked          = 1 << 0
	flagPending         = 1 << 1
	flagPost            = 1 << 2
	flagVoid            = 1 << 3
	flagBalancing       = 1 << 4 // of the debit account
	flagBalancingCredit = 1 << 5
	flagClosingDebit    = 1 << 6
	flagClosingCredit   = 1 << 7
	flagsKnown          = 1<<9 - 1

	accountBounded        = 1 << 1 // debits must not exceed credits
	accountCreditsBounded = 1 << 2
	accountClosed         = 1 << 5
)

// createTransfer creates one transfer. The checks are in the order of the server's, because the
// first that fails is the status.
func (e *Emulator) createTransfer(t *tb.Transfer, at uint64) (tb.CreateTransferStatus, uint64) {
	var zero tb.Uint128
	old := e.transfers[t.ID]
	switch {
	case t.Timestamp != 0:
		return tb.TransferTimestampMustBeZero, at
	case t.Flags > flagsKnown:
		return tb.TransferReservedFlag, at
	case t.ID == zero:
		return tb.TransferIDMustNotBeZero, at
	case t.ID == tb.AmountMax:
		return tb.TransferIDMustNotBeIntMax, at
	case old != nil:
		return e.transferExists(t, old, at)
	case e.failed[t.ID]:
		return tb.TransferIDAlreadyFailed, at
	case t.Flags&(flagPost|flagVoid) != 0:
		return e.resolvePending(t, at), at
	}
	if s := checkTransfer(t); s != tb.TransferCreated {
		return s, at
	}
	return e.transfer(t, at), at
}

// checkTransfer checks a transfer without looking at accounts or other transfers.
func checkTransfer(t *tb.Transfer) tb.CreateTransferStatus {
	var zero tb.Uint128
	switch {
	case t.DebitAccountID == zero:
		return tb.TransferDebitAccountIDMustNotBeZero
	case t.DebitAccountID == tb.AmountMax:
		return tb.TransferDebitAccountIDMustNotBeIntMax
	case t.CreditAccountID == zero:
		return tb.TransferCreditAccountIDMustNotBeZero
	case t.CreditAccountID == tb.AmountMax:
		return tb.TransferCreditAccountIDMustNotBeIntMax
	case t.CreditAccountID == t.DebitAccountID:
		return tb.TransferAccountsMustBeDifferent
	case t.PendingID != zero:
		return tb.TransferPendingIDMustBeZero
	case t.Flags&flagPending == 0 && t.Timeout != 0:
		return tb.TransferTimeoutReservedForPendingTransfer
	case t.Flags&flagPending == 0 && t.Flags&(flagClosingDebit|flagClosingCredit) != 0:
		return tb.TransferClosingTransferMustBePending
	case t.Ledger == 0:
		return tb.TransferLedgerMustNotBeZero
	case t.Code == 0:
		return tb.TransferCodeMustNotBeZero
	}
	return tb.TransferCreated
}

// transfer carries out a transfer that is neither a post nor a void.
func (e *Emulator) transfer(t *tb.Transfer, at uint64) tb.CreateTransferStatus {
	debit, credit := e.account(t.DebitAccountID), e.account(t.CreditAccountID)
	switch {
	case debit == nil:
		return tb.TransferDebitAccountNotFound
	case credit == nil:
		return tb.TransferCreditAccountNotFound
	case debit.Ledger != credit.Ledger:
		return tb.TransferAccountsMustHaveTheSameLedger
	case t.Ledger != debit.Ledger:
		return tb.TransferTransferMustHaveTheSameLedgerAsAccounts
	case debit.Flags&accountClosed != 0:
		return tb.TransferDebitAccountAlreadyClosed
	case credit.Flags&accountClosed != 0:
		return tb.TransferCreditAccountAlreadyClosed
	}
	amount := uint128.Of(t.Amount)
	if t.Flags&flagBalancing != 0 {
		amount = amount.Min(uint128.Of(debit.CreditsPosted).
			Minus(uint128.Of(debit.DebitsPosted).Plus(uint128.Of(debit.DebitsPending))))
	}
	if t.Flags&flagBalancingCredit != 0 {
		amount = amount.Min(uint128.Of(credit.DebitsPosted).
			Minus(uint128.Of(credit.CreditsPosted).Plus(uint128.Of(credit.CreditsPending))))
	}
	if s := overflows(t, debit, credit, amount, at); s != tb.TransferCreated {
		return s
	}
	if debit.Flags&accountBounded != 0 && uint128.Of(debit.DebitsPending).Plus(uint128.Of(debit.DebitsPosted)).
		Plus(amount).GreaterThan(uint128.Of(debit.CreditsPosted)) {
		return tb.TransferExceedsCredits
	}
	if credit.Flags&accountCreditsBounded != 0 && uint128.Of(credit.CreditsPending).
		Plus(uint128.Of(credit.CreditsPosted)).Plus(amount).GreaterThan(uint128.Of(credit.DebitsPosted)) {
		return tb.TransferExceedsDebits
	}
	n := *t
	n.Amount, n.Timestamp = amount.Uint128(), at
	state := stateNone
	if t.Flags&flagPending != 0 {
		state = statePending
		debit.DebitsPending = uint128.Of(debit.DebitsPending).Plus(amount).Uint128()
		credit.CreditsPending = uint128.Of(credit.CreditsPending).Plus(amount).Uint128()
	} else {
		debit.DebitsPosted = uint128.Of(debit.DebitsPosted).Plus(amount).Uint128()
		credit.CreditsPosted = uint128.Of(credit.CreditsPosted).Plus(amount).Uint128()
	}
	if t.Flags&flagClosingDebit != 0 {
		debit.Flags |= accountClosed
	}
	if t.Flags&flagClosingCredit != 0 {
		credit.Flags |= accountClosed
	}
	made := e.insert(n, state)
	if t.Timeout > 0 {
		e.scheduleExpiry(made)
	}
	return tb.TransferCreated
}

// overflows checks that no balance would exceed 128 bits.
func overflows(t *tb.Transfer, debit, credit *tb.Account, amount uint128.Number, at uint64) tb.CreateTransferStatus {
	over := func(a tb.Uint128) bool { return uint128.Of(a).Overflows(amount) }
	both := func(a, b tb.Uint128) tb.Uint128 { return uint128.Of(a).Plus(uint128.Of(b)).Uint128() }
	pending := t.Flags&flagPending != 0
	switch {
	case pending && over(debit.DebitsPending):
		return tb.TransferOverflowsDebitsPending
	case pending && over(credit.CreditsPending):
		return tb.TransferOverflowsCreditsPending
	case over(debit.DebitsPosted):
		return tb.TransferOverflowsDebitsPosted
	case over(credit.CreditsPosted):
		return tb.TransferOverflowsCreditsPosted
	case over(both(debit.DebitsPending, debit.DebitsPosted)):
		return tb.TransferOverflowsDebits
	case over(both(credit.CreditsPending, credit.CreditsPosted)):
		return tb.TransferOverflowsCredits
	case at > math.MaxInt64-uint64(t.Timeout)*uint64(time.Second):
		return tb.TransferOverflowsTimeout
	}
	return tb.TransferCreated
}

// transferExists returns how a transfer differs from the existing one with its ID.
func (e *Emulator) transferExists(t *tb.Transfer, old *storedTransfer, at uint64) (tb.CreateTransferStatus, uint64) {
	switch {
	case t.Flags != old.Flags:
		return tb.TransferExistsWithDifferentFlags, at
	case t.PendingID != old.PendingID:
		return tb.TransferExistsWithDifferentPendingID, at
	case t.Timeout != old.Timeout:
		return tb.TransferExistsWithDifferentTimeout, at
	}
	if t.Flags&(flagPost|flagVoid) != 0 {
		return e.resolveExists(t, old, at)
	}
	amount, was := uint128.Of(t.Amount), uint128.Of(old.Amount)
	balancing := t.Flags&(flagBalancing|flagBalancingCredit) != 0
	switch {
	case t.DebitAccountID != old.DebitAccountID:
		return tb.TransferExistsWithDifferentDebitAccountID, at
	case t.CreditAccountID != old.CreditAccountID:
		return tb.TransferExistsWithDifferentCreditAccountID, at
	case balancing && was.GreaterThan(amount), !balancing && amount != was:
		return tb.TransferExistsWithDifferentAmount, at
	}
	return sameData(t, &old.Transfer, at)
}

// sameData compares the fields that every transfer has.
func sameData(t, old *tb.Transfer, at uint64) (tb.CreateTransferStatus, uint64) {
	switch {
	case t.UserData128 != old.UserData128:
		return tb.TransferExistsWithDifferentUserData128, at
	case t.UserData64 != old.UserData64:
		return tb.TransferExistsWithDifferentUserData64, at
	case t.UserData32 != old.UserData32:
		return tb.TransferExistsWithDifferentUserData32, at
	case t.Ledger != old.Ledger:
		return tb.TransferExistsWithDifferentLedger, at
	case t.Code != old.Code:
		return tb.TransferExistsWithDifferentCode, at
	}
	return tb.TransferExists, old.Timestamp
}
