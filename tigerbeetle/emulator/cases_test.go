//go:build cgo

package emulator

import (
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

type (
	sent     = []tb.Transfer
	statuses = []tb.CreateTransferStatus
	balances = map[uint64][4]uint64
)

func TestEmulatorChains(t *testing.T) {
	t.Parallel()
	chain := sent{holdOf(1, 10, 60, flagLinked), holdOf(2, 20, 60, flagLinked), holdOf(3, 30, 60, 0)}
	greedy := sent{holdOf(1, 10, 60, flagLinked), holdOf(2, 95, 60, flagLinked), holdOf(3, 30, 60, 0)}
	open := sent{holdOf(1, 10, 60, flagLinked), holdOf(2, 20, 60, flagLinked)}
	for name, calls := range map[string][]emulatorCall{
		"a chain sent again says that it exists, and goes no further": {
			{
				send:     chain,
				want:     statuses{isCreated, isCreated, isCreated},
				balances: balances{caseBounded: {60, 0, 0, 100}},
			},
			{
				send:     chain,
				want:     statuses{isThere, isUndone, isUndone},
				balances: balances{caseBounded: {60, 0, 0, 100}},
			},
		},
		"a denied chain changes nothing, and burns the ID that failed": {
			{
				send:     greedy,
				want:     statuses{isUndone, isDenied, isUndone},
				balances: balances{caseBounded: {0, 0, 0, 100}},
			},
			{send: greedy, want: statuses{isUndone, isBurned, isUndone}},
			{send: sent{moveOf(9, caseVault, caseBounded, 100, 0)}, want: statuses{isCreated}},
			{send: greedy, want: statuses{isUndone, isBurned, isUndone}},
			{
				send: sent{holdOf(1, 1, 0, 0), holdOf(2, 1, 0, 0), holdOf(3, 1, 0, 0)},
				want: statuses{isCreated, isBurned, isCreated},
			},
		},
		"a chain open at the end fails as a whole": {
			{send: open, want: statuses{isUndone, tb.TransferLinkedEventChainOpen}},
			{send: greedy[:2], want: statuses{isUndone, tb.TransferLinkedEventChainOpen}},
			{send: chain, want: statuses{isCreated, isCreated, isCreated}},
		},
		"an open chain of one": {
			{send: open[:1], want: statuses{tb.TransferLinkedEventChainOpen}},
			{send: sent{holdOf(1, 10, 60, 0)}, want: statuses{isCreated}},
		},
		"chains of a call stand for themselves": {
			{
				send: sent{holdOf(1, 60, 0, flagLinked), holdOf(2, 60, 0, 0), holdOf(3, 60, 0, flagLinked), holdOf(4, 40, 0, 0)},
				want: statuses{isUndone, isDenied, isCreated, isCreated}, balances: balances{caseBounded: {100, 0, 0, 100}},
			},
		},
		"later events of a chain see earlier ones, and a broken chain takes all back": {
			{send: sent{holdOf(1, 90, 0, 0)}, want: statuses{isCreated}},
			{
				send: sent{voidOf(2, 1, flagLinked), holdOf(3, 95, 0, flagLinked), postOf(4, 3, 5, flagLinked), holdOf(5, 96, 0, 0)},
				want: statuses{isUndone, isUndone, isUndone, isDenied}, balances: balances{caseBounded: {90, 0, 0, 100}},
			},
			{
				send: sent{voidOf(2, 1, flagLinked), holdOf(3, 95, 0, flagLinked), postOf(4, 3, 5, 0)},
				want: statuses{isCreated, isCreated, isCreated}, balances: balances{caseBounded: {0, 5, 0, 100}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); playCalls(t, calls) })
	}
}

func TestEmulatorPending(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string][]emulatorCall{
		"a partial post gives the rest back": {
			{
				send:     sent{holdOf(1, 30, 0, 0), postOf(2, 1, 10, 0)},
				want:     statuses{isCreated, isCreated},
				balances: balances{caseBounded: {0, 10, 0, 100}},
			},
			{
				send: sent{postOf(3, 1, 10, 0), voidOf(4, 1, 0)},
				want: statuses{
					tb.TransferPendingTransferAlreadyPosted, tb.TransferPendingTransferAlreadyPosted,
				},
			},
			{
				send: sent{postOf(2, 1, 10, 0), postOf(2, 1, 11, 0), allOf(postOf(2, 1, 0, 0))},
				want: statuses{
					isThere, tb.TransferExistsWithDifferentAmount, tb.TransferExistsWithDifferentAmount,
				},
			},
		},
		"the greatest amount posts all, no amount posts nothing, and more is too much": {
			{
				send:     sent{holdOf(1, 30, 0, 0), postOf(2, 1, 31, 0), allOf(postOf(3, 1, 0, 0))},
				want:     statuses{isCreated, tb.TransferExceedsPendingTransferAmount, isCreated},
				balances: balances{caseBounded: {0, 30, 0, 100}},
			},
			{
				send:     sent{holdOf(4, 30, 0, 0), postOf(5, 4, 0, 0)},
				want:     statuses{isCreated, isCreated},
				balances: balances{caseBounded: {0, 30, 0, 100}},
			},
		},
		"a void is of all": {
			{
				send: sent{
					holdOf(1, 30, 0, 0),
					tb.Transfer{ID: tb.ToUint128(2), PendingID: tb.ToUint128(1), Amount: tb.ToUint128(29), Flags: flagVoid},
				},
				want: statuses{isCreated, tb.TransferPendingTransferHasDifferentAmount},
			},
			{
				send:     sent{voidOf(2, 1, 0), voidOf(2, 1, 0), postOf(3, 1, 0, 0)},
				want:     statuses{isCreated, isThere, tb.TransferPendingTransferAlreadyVoided},
				balances: balances{caseBounded: {0, 0, 0, 100}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); playCalls(t, calls) })
	}
}

func TestEmulatorExpiry(t *testing.T) {
	t.Parallel()
	const ns = time.Nanosecond
	for name, calls := range map[string][]emulatorCall{
		"a nanosecond before its end it can be posted": {
			{send: sent{holdOf(1, 30, 1, 0)}, want: statuses{isCreated}},
			{
				after:    time.Second - ns,
				send:     sent{postOf(2, 1, 30, 0)},
				want:     statuses{isCreated},
				balances: balances{caseBounded: {0, 30, 0, 100}},
			},
		},
		"at its end it cannot": {
			{send: sent{holdOf(1, 30, 1, 0)}, want: statuses{isCreated}},
			{
				after: time.Second,
				send:  sent{postOf(2, 1, 30, 0), voidOf(3, 1, 0)},
				want:  statuses{tb.TransferPendingTransferExpired, tb.TransferPendingTransferExpired},
			},
			{after: ns, balances: balances{caseBounded: {0, 0, 0, 100}}},
			{
				after: time.Hour,
				send:  sent{postOf(2, 1, 30, 0), holdOf(3, 100, 0, 0), holdOf(1, 30, 1, 0)},
				want:  statuses{tb.TransferPendingTransferExpired, isCreated, isThere},
			},
		},
		"what it was denied is given once it has expired": {
			{send: sent{holdOf(1, 100, 2, 0), holdOf(2, 1, 0, 0)}, want: statuses{isCreated, isDenied}},
			{after: 2 * time.Second, send: sent{holdOf(3, 1, 0, 0)}, want: statuses{isDenied}},
			{
				after:    ns,
				send:     sent{holdOf(4, 1, 0, 0)},
				want:     statuses{isCreated},
				balances: balances{caseBounded: {1, 0, 0, 100}},
			},
		},
		"what a broken chain had begun never expires": {
			{
				send: sent{holdOf(1, 10, 1, flagLinked), holdOf(2, 95, 1, 0)},
				want: statuses{isUndone, isDenied},
			},
			{send: sent{holdOf(1, 10, 3, 0)}, want: statuses{isCreated}},
			{after: 2 * time.Second, balances: balances{caseBounded: {10, 0, 0, 100}}},
			{after: 2 * time.Second, balances: balances{caseBounded: {0, 0, 0, 100}}},
		},
		"only what is pending can be resolved": {
			{
				send: sent{
					moveOf(1, caseBounded, caseVault, 1, 0), voidOf(2, 1, 0), voidOf(3, 3, 0), voidOf(4, 0, 0),
				},
				want: statuses{
					isCreated, tb.TransferPendingTransferNotPending, tb.TransferPendingIDMustBeDifferent,
					tb.TransferPendingIDMustNotBeZero,
				},
			},
			{
				send: sent{voidOf(5, 77, 0), voidOf(5, 1, 0), voidOf(6, 1, flagPost)},
				want: statuses{
					tb.TransferPendingTransferNotFound, isBurned, tb.TransferFlagsAreMutuallyExclusive,
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); playCalls(t, calls) })
	}
}

func TestEmulatorBalancing(t *testing.T) {
	t.Parallel()
	both := uint16(flagBalancing | flagBalancingCredit)
	owed, held := moveOf(1, caseCreditor, caseVault, 30, 0), moveOf(7, casePlain, caseVault, 40, flagBalancing|flagPending)
	for name, calls := range map[string][]emulatorCall{
		"a balancing debit is at most what the account has": {
			{
				send:     sent{holdOf(1, 30, 0, 0), moveOf(2, caseBounded, caseVault, 90, flagBalancing)},
				want:     statuses{isCreated, isCreated},
				balances: balances{caseBounded: {30, 70, 0, 100}},
			},
			{
				send:     sent{moveOf(3, caseBounded, caseVault, 5, flagBalancing)},
				want:     statuses{isCreated},
				balances: balances{caseBounded: {30, 70, 0, 100}},
			},
			{
				send: sent{
					moveOf(2, caseBounded, caseVault, 90, flagBalancing),
					moveOf(2, caseBounded, caseVault, 70, flagBalancing),
					moveOf(2, caseBounded, caseVault, 69, flagBalancing),
				},
				want: statuses{isThere, isThere, tb.TransferExistsWithDifferentAmount},
			},
		},
		"also of an account without bounds, and of a hold": {
			{
				send:     sent{held, allOf(moveOf(8, casePlain, caseVault, 0, flagBalancing))},
				want:     statuses{isCreated, isCreated},
				balances: balances{casePlain: {40, 10, 0, 50}},
			},
			{
				send:     sent{moveOf(9, casePlain, caseVault, 5, flagBalancing), moveOf(10, casePlain, caseVault, 5, 0)},
				want:     statuses{isCreated, isCreated},
				balances: balances{casePlain: {40, 15, 0, 50}},
			},
		},
		"a balancing credit is at most what the account owes": {
			{
				send:     sent{moveOf(1, caseVault, caseCreditor, 150, flagBalancingCredit)},
				want:     statuses{isCreated},
				balances: balances{caseCreditor: {0, 100, 0, 100}},
			},
			{send: sent{moveOf(2, caseVault, caseCreditor, 1, 0)}, want: statuses{tb.TransferExceedsDebits}},
		},
		"balancing both sides is the least of both": {
			{
				send:     sent{owed, moveOf(2, casePlain, caseCreditor, 80, both)},
				want:     statuses{isCreated, isCreated},
				balances: balances{casePlain: {0, 50, 0, 50}, caseCreditor: {0, 130, 0, 50}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); playCalls(t, calls) })
	}
}

func TestEmulatorSums(t *testing.T) {
	t.Parallel()
	for name, calls := range map[string][]emulatorCall{
		"nothing can be moved, held and given back": {
			{
				send: sent{
					moveOf(1, caseBounded, caseVault, 100, 0), moveOf(2, caseBounded, caseVault, 0, 0), holdOf(3, 0, 1, 0),
					voidOf(4, 3, 0),
				},
				want:     statuses{isCreated, isCreated, isCreated, isCreated},
				balances: balances{caseBounded: {0, 100, 0, 100}},
			},
			{
				send: sent{holdOf(5, 0, 1, 0), holdOf(6, 0, 0, 0), postOf(7, 6, 0, 0), voidOf(8, 6, 0)},
				want: statuses{isCreated, isCreated, isCreated, tb.TransferPendingTransferAlreadyPosted},
			},
			{
				after: 2 * time.Second,
				send:  sent{voidOf(9, 5, 0)},
				want:  statuses{tb.TransferPendingTransferExpired},
			},
		},
		"sums of more than 128 bits": {
			{
				send: sent{
					allOf(moveOf(1, casePlain, caseVault, 0, 0)), allOf(moveOf(2, casePlain, caseVault, 0, flagPending)),
				},
				want: statuses{tb.TransferOverflowsCreditsPosted, tb.TransferOverflowsCreditsPosted},
			},
			{
				send: sent{allOf(moveOf(3, caseElsewhere, caseVault, 0, 0)), moveOf(4, caseMissing, caseVault, 1, 0)},
				want: statuses{
					tb.TransferAccountsMustHaveTheSameLedger, tb.TransferDebitAccountNotFound,
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); playCalls(t, calls) })
	}
}

func TestEmulatorClosing(t *testing.T) {
	t.Parallel()
	closed := tb.TransferDebitAccountAlreadyClosed
	calls := map[string][]emulatorCall{
		"a closed account lets go, and nothing else": {
			{
				send: sent{holdOf(1, 10, 0, 0), holdOf(2, 20, 0, 0), holdOf(3, 0, 0, flagClosingDebit)},
				want: statuses{isCreated, isCreated, isCreated},
			},
			{
				send:     sent{holdOf(4, 1, 0, 0), postOf(5, 1, 10, 0), voidOf(6, 2, 0)},
				want:     statuses{closed, closed, isCreated},
				balances: balances{caseBounded: {10, 0, 0, 100}},
			},
			{
				send: sent{moveOf(7, caseVault, caseBounded, 1, 0)},
				want: statuses{tb.TransferCreditAccountAlreadyClosed},
			},
			{
				send: sent{voidOf(8, 3, 0), holdOf(4, 1, 0, 0), postOf(5, 1, 10, 0), postOf(9, 1, 10, 0)},
				want: statuses{isCreated, isBurned, isBurned, isCreated},
			},
		},
		"it opens when the transfer that closed it expires": {
			{
				send: sent{holdOf(1, 0, 1, flagClosingDebit), holdOf(2, 1, 0, 0)},
				want: statuses{isCreated, closed},
			},
			{after: time.Second + 1, send: sent{holdOf(3, 1, 0, 0)}, want: statuses{isCreated}},
		},
		"it stays closed if a chain opens and closes it": {
			{send: sent{holdOf(1, 0, 5, flagClosingDebit)}, want: statuses{isCreated}},
			{
				send: sent{voidOf(2, 1, flagLinked), holdOf(3, 0, 9, flagClosingDebit), holdOf(4, 1, 0, 0)},
				want: statuses{isCreated, isCreated, closed},
			},
			{after: 6 * time.Second, send: sent{holdOf(5, 1, 0, 0)}, want: statuses{closed}},
		},
		"a broken chain does not close": {
			{
				send: sent{holdOf(1, 0, 5, flagClosingDebit|flagLinked), holdOf(2, 1, 0, 0)},
				want: statuses{isUndone, closed},
			},
			{send: sent{holdOf(3, 1, 0, 0)}, want: statuses{isCreated}},
		},
		"only what is pending closes": {
			{
				send: sent{
					moveOf(1, caseBounded, caseVault, 1, flagClosingDebit),
					moveOf(2, caseBounded, caseVault, 1, flagClosingCredit),
				},
				want: statuses{
					tb.TransferClosingTransferMustBePending, tb.TransferClosingTransferMustBePending,
				},
			},
		},
	}
	for name, calls := range calls {
		t.Run(name, func(t *testing.T) { t.Parallel(); playCalls(t, calls) })
	}
}
