//go:build cgo

package emulator

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// The accounts of the cases. All are funded by the vault.
const (
	caseVault    = iota + 1
	caseBounded  // debits must not exceed its credits, 100
	caseCreditor // credits must not exceed its debits, 100
	casePlain    // has credits of 50
	caseElsewhere
	caseMissing
)

// Short names of statuses, for tables.
const (
	isCreated = tb.TransferCreated
	isUndone  = tb.TransferLinkedEventFailed
	isBurned  = tb.TransferIDAlreadyFailed
	isThere   = tb.TransferExists
	isDenied  = tb.TransferExceedsCredits
)

// moveOf returns a transfer of an amount with flags.
func moveOf(id, debit, credit, amount uint64, flags uint16) tb.Transfer {
	return tb.Transfer{
		ID: tb.ToUint128(id), DebitAccountID: tb.ToUint128(debit), CreditAccountID: tb.ToUint128(credit),
		Amount: tb.ToUint128(amount), Ledger: 1, Code: 1, Flags: flags,
	}
}

// holdOf returns a pending transfer that holds an amount of the bounded account for some seconds.
func holdOf(id, amount uint64, seconds uint32, flags uint16) tb.Transfer {
	t := moveOf(id, caseBounded, caseVault, amount, flagPending|flags)
	t.Timeout = seconds
	return t
}

func postOf(id, pending, amount uint64, flags uint16) tb.Transfer {
	return tb.Transfer{
		ID: tb.ToUint128(id), PendingID: tb.ToUint128(pending), Amount: tb.ToUint128(amount), Flags: flagPost | flags,
	}
}

func voidOf(id, pending uint64, flags uint16) tb.Transfer {
	return tb.Transfer{ID: tb.ToUint128(id), PendingID: tb.ToUint128(pending), Flags: flagVoid | flags}
}

// allOf returns the transfer with the largest amount, which means all of it.
func allOf(t tb.Transfer) tb.Transfer {
	t.Amount = tb.AmountMax
	return t
}

// datedBy returns the transfer with user data.
func datedBy(t tb.Transfer, data uint64) tb.Transfer {
	t.UserData64 = data
	return t
}

// emulatorCall is a call some time after the previous one, and its expected answer.
type emulatorCall struct {
	after time.Duration
	send  []tb.Transfer
	want  []tb.CreateTransferStatus
	// balances are, by account, the debits pending and posted and the credits pending and posted.
	balances map[uint64][4]uint64
}

// casesBegin is the time at which the cases begin.
const casesBegin = 1_800_000_000 * time.Second

// funded returns an emulator with the cases' accounts, and its clock.
func funded(t *testing.T) (*Emulator, *time.Duration) {
	t.Helper()
	clock := casesBegin
	e := New(&Options{Now: func() time.Time { return time.Unix(0, int64(clock)) }, MaxEvents: 10})
	accounts := []tb.Account{
		{ID: tb.ToUint128(caseVault)}, {ID: tb.ToUint128(caseBounded), Flags: accountBounded},
		{ID: tb.ToUint128(caseCreditor), Flags: accountCreditsBounded}, {ID: tb.ToUint128(casePlain)},
		{ID: tb.ToUint128(caseElsewhere), Ledger: 2},
	}
	for i := range accounts {
		accounts[i].Code = 1
		accounts[i].Ledger = max(1, accounts[i].Ledger)
	}
	made, err := e.CreateAccounts(t.Context(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	funds, err := e.CreateTransfers(t.Context(), []tb.Transfer{
		moveOf(1001, caseVault, caseBounded, 100, 0), moveOf(1002, caseCreditor, caseVault, 100, 0), moveOf(1003, caseVault, casePlain, 50, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	if made[4].Status != tb.AccountCreated || funds[2].Status != isCreated {
		t.Fatal(made, funds)
	}
	clock += time.Second
	return e, &clock
}

// playCalls makes the calls and compares the answers.
func playCalls(t *testing.T, calls []emulatorCall) {
	t.Helper()
	e, clock := funded(t)
	for i, call := range calls {
		*clock += call.after
		results, err := e.CreateTransfers(t.Context(), call.send)
		if err != nil {
			t.Fatal(err)
		}
		var got []tb.CreateTransferStatus
		for _, r := range results {
			got = append(got, r.Status)
		}
		if !slices.Equal(got, call.want) {
			t.Fatalf("call %d: got %v, want %v", i, got, call.want)
		}
		for id, want := range call.balances {
			found, err := e.LookupAccounts(t.Context(), []tb.Uint128{tb.ToUint128(id)})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			a := found[0]
			got := [4]uint64{uint128.Of(a.DebitsPending).Lo, uint128.Of(a.DebitsPosted).Lo, uint128.Of(a.CreditsPending).Lo, uint128.Of(a.CreditsPosted).Lo}
			if got != want {
				t.Fatalf("call %d: account %d: got %v, want %v", i, id, got, want)
			}
		}
	}
}

// TestEmulatorExpiryOrder checks that transfers expire in the order of their ends. No two end at
// the same instant, because no two have the same timestamp.
func TestEmulatorExpiryOrder(t *testing.T) {
	t.Parallel()
	e, clock := funded(t)
	_, err := e.CreateTransfers(t.Context(), sent{
		holdOf(1, 1, 3, 0), holdOf(2, 1, 1, 0), holdOf(3, 1, 2, 0), holdOf(4, 1, 1, 0), holdOf(5, 1, 1, 0), voidOf(6, 4, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Expired(); len(got) != 0 {
		t.Errorf("got %v expired, want none", got)
	}
	*clock += time.Minute
	if _, err := e.LookupAccounts(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := []tb.Uint128{tb.ToUint128(2), tb.ToUint128(5), tb.ToUint128(3), tb.ToUint128(1)}
	if got := e.Expired(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestEmulatorSizes checks that a call that is too large does nothing.
func TestEmulatorSizes(t *testing.T) {
	t.Parallel()
	e, _ := funded(t)
	ctx, ids := t.Context(), make([]tb.Uint128, 88)
	many := slices.Repeat(sent{holdOf(1, 1, 0, 0)}, 11)
	if _, err := e.CreateTransfers(ctx, many); !errors.Is(err, tb.ErrTooMuchData) {
		t.Errorf("11 transfers: got %v, want too much data", err)
	}
	if got, err := e.CreateTransfers(ctx, many[:10]); err != nil || got[0].Status != isCreated || got[9].Status != isThere {
		t.Errorf("10 transfers: got %v, %v", got, err)
	}
	if got, err := e.CreateTransfers(ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("no transfers: got %v, %v", got, err)
	}
	if _, err := e.CreateAccounts(ctx, make([]tb.Account, 11)); !errors.Is(err, tb.ErrTooMuchData) {
		t.Errorf("11 accounts: got %v, want too much data", err)
	}
	if _, err := e.LookupTransfers(ctx, ids); !errors.Is(err, tb.ErrTooMuchData) {
		t.Errorf("88 IDs: got %v, want too much data", err)
	}
	if _, err := e.LookupTransfers(ctx, ids[:87]); err != nil {
		t.Errorf("87 IDs: got %v", err)
	}
	if _, err := e.QueryTransfers(ctx, tb.QueryFilter{Limit: 8190}); !errors.Is(err, tb.ErrTooMuchData) {
		t.Errorf("8,190 answers: got %v, want too much data", err)
	}
	for limit, want := range map[uint32]int{0: 0, 1: 1, 3: 3, 8189: 4} {
		if got, err := e.QueryTransfers(ctx, tb.QueryFilter{Limit: limit}); err != nil || len(got) != want {
			t.Errorf("limit %d: got %d, %v, want %d", limit, len(got), err, want)
		}
	}
}

// TestEmulatorInheritsUserData checks that a post or void without user data has that of its pending
// transfer.
func TestEmulatorInheritsUserData(t *testing.T) {
	t.Parallel()
	e, _ := funded(t)
	send := sent{
		datedBy(holdOf(1, 10, 9, 0), 7), postOf(2, 1, 4, 0), datedBy(holdOf(3, 10, 0, 0), 7), datedBy(voidOf(4, 3, 0), 8),
		datedBy(postOf(2, 1, 4, 0), 7), datedBy(postOf(2, 1, 4, 0), 6),
	}
	results, err := e.CreateTransfers(t.Context(), send)
	if err != nil {
		t.Fatal(err)
	}
	if got := results[4]; got.Status != isThere || got.Timestamp != results[1].Timestamp {
		t.Errorf("with the data it inherited: got %v, want that it exists since %d", got, results[1].Timestamp)
	}
	if got := results[5].Status; got != tb.TransferExistsWithDifferentUserData64 {
		t.Errorf("with other data: got %v", got)
	}
	found, err := e.LookupTransfers(t.Context(), []tb.Uint128{tb.ToUint128(2), tb.ToUint128(5), tb.ToUint128(4)})
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	want := tb.Transfer{
		ID: tb.ToUint128(2), DebitAccountID: tb.ToUint128(caseBounded), CreditAccountID: tb.ToUint128(caseVault),
		Amount: tb.ToUint128(4), PendingID: tb.ToUint128(1), UserData64: 7, Ledger: 1, Code: 1, Flags: flagPost,
		Timestamp: results[1].Timestamp,
	}
	if found[0] != want {
		t.Errorf("got  %+v,\nwant %+v", found[0], want)
	}
	if got := found[1]; got.UserData64 != 8 || uint128.Of(got.Amount).Lo != 10 {
		t.Errorf("got data %d and amount %v of a void, want 8 and 10", got.UserData64, got.Amount)
	}
}

// TestEmulatorLastTimeout checks that a timeout that would overflow the clock is refused.
func TestEmulatorLastTimeout(t *testing.T) {
	t.Parallel()
	e, clock := funded(t)
	*clock = math.MaxInt64 - 5*time.Second
	results, err := e.CreateTransfers(t.Context(), sent{holdOf(1, 1, 5, 0), holdOf(2, 1, 4, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if got := results[0].Status; got != tb.TransferOverflowsTimeout {
		t.Errorf("got %v, want %v", got, tb.TransferOverflowsTimeout)
	}
	if got := results[1].Status; got != isCreated {
		t.Errorf("got %v, want %v", got, isCreated)
	}
}

func TestEmulatorEnds(t *testing.T) {
	t.Parallel()
	e, _ := funded(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.QueryAccounts(ctx, tb.QueryFilter{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that nobody waits for: got %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.QueryAccounts(t.Context(), tb.QueryFilter{Limit: 1}); !errors.Is(err, tb.ErrClientClosed) {
		t.Errorf("after Close: got %v, want %v", err, tb.ErrClientClosed)
	}
}
