//go:build cgo

package emulator

import (
	"cmp"
	"container/heap"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// resolvePending posts or voids a pending transfer.
func (e *Emulator) resolvePending(t *tb.Transfer, at uint64) tb.CreateTransferStatus {
	var zero tb.Uint128
	const others = flagPending | flagBalancing | flagBalancingCredit | flagClosingDebit | flagClosingCredit
	switch {
	case t.Flags&flagPost != 0 && t.Flags&flagVoid != 0, t.Flags&others != 0:
		return tb.TransferFlagsAreMutuallyExclusive
	case t.PendingID == zero:
		return tb.TransferPendingIDMustNotBeZero
	case t.PendingID == tb.AmountMax:
		return tb.TransferPendingIDMustNotBeIntMax
	case t.PendingID == t.ID:
		return tb.TransferPendingIDMustBeDifferent
	case t.Timeout != 0:
		return tb.TransferTimeoutReservedForPendingTransfer
	}
	p := e.transfers[t.PendingID]
	if p == nil {
		return tb.TransferPendingTransferNotFound
	}
	amount, s := resolvable(t, p)
	switch {
	case s != tb.TransferCreated:
		return s
	case p.state == statePosted:
		return tb.TransferPendingTransferAlreadyPosted
	case p.state == stateVoided:
		return tb.TransferPendingTransferAlreadyVoided
	case p.state == stateExpired, p.Timeout > 0 && e.expires(p) <= at:
		return tb.TransferPendingTransferExpired
	}
	debit, credit := e.account(p.DebitAccountID), e.account(p.CreditAccountID)
	post := t.Flags&flagPost != 0
	switch {
	case post && debit.Flags&accountClosed != 0:
		return tb.TransferDebitAccountAlreadyClosed
	case post && credit.Flags&accountClosed != 0:
		return tb.TransferCreditAccountAlreadyClosed
	}
	e.insert(resolution(t, p, amount, at), stateNone)
	release(p, debit, credit)
	if post {
		e.setState(p, statePosted)
		debit.DebitsPosted = uint128.Of(debit.DebitsPosted).Plus(amount).Uint128()
		credit.CreditsPosted = uint128.Of(credit.CreditsPosted).Plus(amount).Uint128()
	} else {
		e.setState(p, stateVoided)
	}
	return tb.TransferCreated
}

// resolvable checks a post or void against its pending transfer, and returns its amount.
func resolvable(t *tb.Transfer, p *storedTransfer) (uint128.Number, tb.CreateTransferStatus) {
	var zero tb.Uint128
	whole := uint128.Of(p.Amount)
	switch {
	case p.Flags&flagPending == 0:
		return whole, tb.TransferPendingTransferNotPending
	case t.DebitAccountID != zero && t.DebitAccountID != p.DebitAccountID:
		return whole, tb.TransferPendingTransferHasDifferentDebitAccountID
	case t.CreditAccountID != zero && t.CreditAccountID != p.CreditAccountID:
		return whole, tb.TransferPendingTransferHasDifferentCreditAccountID
	case t.Ledger != 0 && t.Ledger != p.Ledger:
		return whole, tb.TransferPendingTransferHasDifferentLedger
	case t.Code != 0 && t.Code != p.Code:
		return whole, tb.TransferPendingTransferHasDifferentCode
	}
	void := t.Flags&flagVoid != 0
	amount := uint128.Of(t.Amount)
	if void && t.Amount == zero || !void && t.Amount == tb.AmountMax {
		amount = whole
	}
	switch {
	case amount.GreaterThan(whole):
		return amount, tb.TransferExceedsPendingTransferAmount
	case void && whole.GreaterThan(amount):
		return amount, tb.TransferPendingTransferHasDifferentAmount
	}
	return amount, tb.TransferCreated
}

// resolution returns the transfer that a post or void is stored as: fields that are not set are
// those of its pending transfer.
func resolution(t *tb.Transfer, p *storedTransfer, amount uint128.Number, at uint64) tb.Transfer {
	n := tb.Transfer{
		ID: t.ID, DebitAccountID: p.DebitAccountID, CreditAccountID: p.CreditAccountID,
		Amount: amount.Uint128(), PendingID: p.ID, UserData128: p.UserData128, UserData64: p.UserData64,
		UserData32: p.UserData32, Ledger: p.Ledger, Code: p.Code, Flags: t.Flags, Timestamp: at,
	}
	if t.UserData128 != (tb.Uint128{}) {
		n.UserData128 = t.UserData128
	}
	n.UserData64 = cmp.Or(t.UserData64, n.UserData64)
	n.UserData32 = cmp.Or(t.UserData32, n.UserData32)
	return n
}

// release subtracts a pending transfer from its accounts, and reopens the accounts that it had
// closed.
func release(p *storedTransfer, debit, credit *tb.Account) {
	amount := uint128.Of(p.Amount)
	debit.DebitsPending = uint128.Of(debit.DebitsPending).Minus(amount).Uint128()
	credit.CreditsPending = uint128.Of(credit.CreditsPending).Minus(amount).Uint128()
	if p.Flags&flagClosingDebit != 0 {
		debit.Flags &^= accountClosed
	}
	if p.Flags&flagClosingCredit != 0 {
		credit.Flags &^= accountClosed
	}
}

// resolveExists returns how a post or void differs from the existing transfer with its ID.
func (e *Emulator) resolveExists(t *tb.Transfer, old *storedTransfer, at uint64) (tb.CreateTransferStatus, uint64) {
	var zero tb.Uint128
	p := e.transfers[t.PendingID]
	amount := t.Amount
	if t.Flags&flagVoid != 0 && amount == zero || t.Flags&flagPost != 0 && amount == tb.AmountMax {
		amount = p.Amount
	}
	switch {
	case t.DebitAccountID != zero && t.DebitAccountID != old.DebitAccountID:
		return tb.TransferExistsWithDifferentDebitAccountID, at
	case t.CreditAccountID != zero && t.CreditAccountID != old.CreditAccountID:
		return tb.TransferExistsWithDifferentCreditAccountID, at
	case amount != old.Amount:
		return tb.TransferExistsWithDifferentAmount, at
	}
	asked := resolution(t, p, uint128.Of(amount), at)
	asked.Ledger, asked.Code = cmp.Or(t.Ledger, old.Ledger), cmp.Or(t.Code, old.Code)
	return sameData(&asked, &old.Transfer, at)
}

// expires returns when a pending transfer expires, in nanoseconds.
func (e *Emulator) expires(t *storedTransfer) uint64 {
	tick := uint64(e.options.Tick)
	return t.Timestamp/tick*tick + uint64(t.Timeout)*uint64(time.Second)
}

// scheduleExpiry adds a pending transfer to those that will expire.
func (e *Emulator) scheduleExpiry(t *storedTransfer) { heap.Push(&e.due, dueEntry{e.expires(t), t}) }

// expireDue expires the pending transfers that are due.
func (e *Emulator) expireDue() {
	for len(e.due) > 0 && e.due[0].at <= e.last {
		p := heap.Pop(&e.due).(dueEntry).entry
		if p.state != statePending || e.transfers[p.ID] != p {
			continue // it was posted or voided, or its chain was undone
		}
		p.state = stateExpired
		release(p, e.accounts[p.DebitAccountID], e.accounts[p.CreditAccountID])
		e.expired = append(e.expired, p.ID)
	}
}

// dueEntry is a pending transfer with a timeout.
type dueEntry struct {
	at    uint64
	entry *storedTransfer
}

// dueHeap is a heap with the transfer that expires first on top; of two that expire at the same
// instant, the older one.
type dueHeap []dueEntry

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].entry.Timestamp, h[j].entry.Timestamp)) < 0
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends x. It implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueEntry)) }

// Pop removes the last element. It implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = dueEntry{}
	*h = (*h)[:last]
	return x
}
