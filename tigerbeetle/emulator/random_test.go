//go:build cgo

package emulator

import (
	"fmt"
	"math"
	"math/rand/v2"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// dice makes random calls for a cluster from a seed. It uses few accounts and few IDs, so that
// calls often meet the same ones. The calls depend on the answers to earlier ones, but not on
// timestamps. Every run has its own IDs and ledgers.
type dice struct {
	*rand.Rand
	run    uint64
	ledger uint32
	number uint64

	accounts []tb.Account  // of this round
	older    []tb.Uint128  // of the rounds before
	past     []tb.Transfer // transfers as they were sent
	asked    []tb.Transfer // those of them sent as pending
	pending  []tb.Transfer // those of them that became pending
}

// remembered is how many transfers the dice keep.
const remembered = 160

// huge returns nearly the largest number of 128 bits.
func huge() tb.Uint128 { return uint128.Number{Hi: math.MaxUint64, Lo: math.MaxUint64 - 50}.Uint128() }

// id returns the run's ID with a number.
func (d *dice) id(n uint64) tb.Uint128 { return uint128.Number{Hi: d.run, Lo: n}.Uint128() }

func (d *dice) next() tb.Uint128 {
	d.number++
	return d.id(d.number)
}

// show returns an ID without its run, so that the logs of two runs can be compared.
func (d *dice) show(id tb.Uint128) string {
	lo, hi := id.Uint64()
	if hi == d.run {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%x.%x", hi, lo)
}

func (d *dice) showLedger(ledger uint32) string {
	if ledger < 1<<20 {
		return fmt.Sprintf("no %d", ledger) // not of this run
	}
	return fmt.Sprint(ledger - d.ledger)
}

// oneIn returns true once in n times on average.
func (d *dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func one[T any](d *dice, of ...T) T { return of[d.IntN(len(of))] }

// odds returns an index at random, weighted by weights.
func (d *dice) odds(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.IntN(sum)
	for i, w := range weights {
		if n < w {
			return i
		}
		n -= w
	}
	return 0
}

// begin returns the accounts of a new round.
func (d *dice) begin() []tb.Account {
	for i := range d.accounts {
		d.older = append(d.older, d.accounts[i].ID)
	}
	if n := len(d.older); n > 40 {
		d.older = d.older[n-40:]
	}
	d.accounts = d.accounts[:0]
	const credits, debits, history = accountCreditsBounded, accountBounded, 1 << 3
	for _, flags := range []uint16{
		0, 0, 0, history, debits, debits, debits | history, credits, credits, 0, 0,
	} {
		d.accounts = append(d.accounts, tb.Account{
			ID: d.next(), Ledger: d.ledger, Code: 1 + uint16(d.IntN(3)), Flags: flags,
			UserData128: tb.ToUint128(d.Uint64N(3)), UserData64: d.Uint64N(3), UserData32: uint32(d.IntN(3)),
		})
	}
	d.accounts[len(d.accounts)-1].Ledger++
	if d.oneIn(6) {
		d.accounts[1+d.IntN(2)].Flags |= accountClosed
	}
	return append([]tb.Account(nil), d.accounts...)
}

// moreAccounts returns accounts that exist, that differ from existing ones, or that are invalid.
func (d *dice) moreAccounts() []tb.Account {
	batch := make([]tb.Account, 1+d.IntN(12))
	for i := range batch {
		a := d.accounts[d.IntN(len(d.accounts))]
		switch d.odds(3, 5, 4) {
		case 1:
			d.spoilAccount(&a)
		case 2:
			a.ID = d.next()
			d.older = append(d.older, a.ID)
			if d.oneIn(3) {
				d.spoilAccount(&a)
			}
		}
		if d.oneIn(2) && (i < len(batch)-1 || d.oneIn(6)) {
			a.Flags |= flagLinked
		}
		batch[i] = a
	}
	return batch
}

func (d *dice) spoilAccount(a *tb.Account) {
	some := tb.ToUint128(1 + d.Uint64N(3))
	switch d.IntN(15) {
	case 0:
		a.Timestamp = 1
	case 1:
		a.Reserved = 1
	case 2:
		a.Flags |= 1 << (6 + d.IntN(10))
	case 3:
		a.ID = one(d, tb.Uint128{}, tb.AmountMax)
	case 4:
		a.Flags |= accountBounded | accountCreditsBounded
	case 5:
		a.DebitsPending = some
	case 6:
		a.DebitsPosted = some
	case 7:
		a.CreditsPending = some
	case 8:
		a.CreditsPosted = some
	case 9:
		a.Ledger = one(d, 0, a.Ledger+1)
	case 10:
		a.Code = one(d, 0, a.Code+1)
	case 11:
		a.UserData128 = tb.ToUint128(9)
	case 12:
		a.UserData64 = 9
	case 13:
		a.UserData32 = 9
	default:
		a.Flags ^= accountBounded
	}
}

// transfers returns the transfers of one call. If short is set, some of the pending ones expire in
// a second or two.
func (d *dice) transfers(most int, short bool) []tb.Transfer {
	if len(d.past) > 0 && d.oneIn(12) {
		return d.again(most)
	}
	batch := make([]tb.Transfer, 1+d.IntN(min(most, one(d, 4, 40, 250))))
	chain := 0 // how many more events are linked
	for i := range batch {
		t := d.transfer(short)
		if chain--; chain < -2 && d.oneIn(8) {
			chain = 1 + d.IntN(one(d, 3, 3, 10))
		}
		switch last := i == len(batch)-1; {
		case chain > 0 && (!last || d.oneIn(6)):
			t.Flags |= flagLinked
		case chain == 0 || last && !d.oneIn(12) || !d.oneIn(8):
			t.Flags &^= flagLinked
		}
		if d.oneIn(24) {
			d.spoil(&t)
		}
		batch[i] = t
		d.remember(&t)
	}
	return batch
}

// remember keeps a transfer for later calls to come back to.
func (d *dice) remember(t *tb.Transfer) {
	d.past = keep(d.past, t)
	if t.Flags&(flagPending|flagPost|flagVoid) == flagPending {
		d.asked = keep(d.asked, t)
	}
}

// made records that a transfer was created.
func (d *dice) made(t *tb.Transfer) {
	if t.Flags&(flagPending|flagPost|flagVoid) == flagPending {
		d.pending = keep(d.pending, t)
	}
}

func keep(list []tb.Transfer, t *tb.Transfer) []tb.Transfer {
	list = append(list, *t)
	return list[max(0, len(list)-remembered):]
}

// lately returns an element of a list, mostly one of the last.
func (d *dice) lately(list []tb.Transfer) tb.Transfer {
	if len(list) == 0 {
		return tb.Transfer{}
	}
	return list[len(list)-1-d.IntN(min(len(list), one(d, 8, remembered)))]
}

// again returns some transfers that were sent before, as a client sends them that got no answer.
func (d *dice) again(most int) []tb.Transfer {
	from := d.IntN(len(d.past))
	n := min(1+d.IntN(20), len(d.past)-from, most)
	return append([]tb.Transfer(nil), d.past[from:from+n]...)
}

func (d *dice) transfer(short bool) tb.Transfer {
	if len(d.past) < 10 {
		return d.fresh(short)
	}
	switch d.odds(6, 6, 4, 26, 58) {
	case 0:
		return d.past[d.IntN(len(d.past))]
	case 1:
		t := d.past[d.IntN(len(d.past))]
		d.spoil(&t)
		return t
	case 2:
		t := d.fresh(short)
		t.ID = d.past[d.IntN(len(d.past))].ID
		return t
	case 3:
		return d.resolving()
	}
	return d.fresh(short)
}

// account returns an account of this round, seldom one of another round or none.
func (d *dice) account() tb.Uint128 {
	if d.oneIn(40) {
		return d.id(1<<40 + d.Uint64N(9))
	}
	if len(d.older) > 0 && d.oneIn(25) {
		return d.older[d.IntN(len(d.older))]
	}
	return d.accounts[d.IntN(len(d.accounts)-1)].ID
}

func (d *dice) amount() tb.Uint128 {
	switch d.odds(10, 70, 15, 3, 2) {
	case 0:
		return tb.Uint128{}
	case 2:
		return tb.ToUint128(d.Uint64N(2000))
	case 3:
		return uint128.Number{Hi: 1 + d.Uint64N(3), Lo: d.Uint64()}.Uint128()
	case 4:
		return one(d, tb.AmountMax, huge())
	}
	return tb.ToUint128(1 + d.Uint64N(30))
}

// fresh returns a new transfer.
func (d *dice) fresh(short bool) tb.Transfer {
	t := tb.Transfer{
		ID: d.next(), DebitAccountID: d.account(), CreditAccountID: d.account(), Amount: d.amount(),
		Ledger: d.ledger, Code: 1 + uint16(d.IntN(3)),
		UserData128: tb.ToUint128(d.Uint64N(4)), UserData64: d.Uint64N(4), UserData32: uint32(d.IntN(4)),
	}
	if t.DebitAccountID == t.CreditAccountID && !d.oneIn(10) {
		t.CreditAccountID = d.accounts[d.IntN(3)].ID
	}
	if d.oneIn(8) {
		t.Flags |= flagBalancing
	}
	if d.oneIn(10) {
		t.Flags |= flagBalancingCredit
	}
	if d.oneIn(2) {
		t.Flags |= flagPending
		t.Timeout = one[uint32](d, 0, 0, 3600, math.MaxUint32)
		if short {
			t.Timeout = one[uint32](d, 0, 1, 1, 2, 2, 3600)
		}
		if d.oneIn(60) {
			t.Flags |= one[uint16](d, flagClosingDebit, flagClosingCredit, flagClosingDebit|flagClosingCredit)
		}
	}
	return t
}

// resolving returns a post or void, mostly of a transfer that is pending.
func (d *dice) resolving() tb.Transfer {
	t := tb.Transfer{ID: d.next(), Flags: one[uint16](d, flagPost, flagVoid)}
	var p tb.Transfer
	switch d.odds(30, 6, 3, 1) {
	case 0:
		p = d.lately(d.pending)
	case 1:
		p = d.lately(d.asked)
	case 2:
		p = d.lately(d.past)
	default:
		p.ID = d.id(1<<41 + d.Uint64N(9))
	}
	t.PendingID = p.ID
	whole := uint128.Of(p.Amount)
	switch d.odds(4, 4, 4, 1) {
	case 0:
		t.Amount = p.Amount
	case 1:
		if t.Flags&flagPost != 0 {
			t.Amount = one(d, tb.AmountMax, tb.Uint128{})
		}
	case 2:
		t.Amount = uint128.Number{Hi: whole.Hi / 2, Lo: whole.Lo / 2}.Uint128()
	default:
		t.Amount = whole.Plus(uint128.Number{Hi: 0, Lo: 1}).Uint128()
	}
	if d.oneIn(3) {
		t.DebitAccountID, t.CreditAccountID, t.Ledger, t.Code =
			p.DebitAccountID, p.CreditAccountID, p.Ledger, p.Code
	}
	if d.oneIn(3) {
		t.UserData128, t.UserData64, t.UserData32 = tb.ToUint128(d.Uint64N(4)), d.Uint64N(4), uint32(d.IntN(4))
	}
	return t
}

// spoil changes one field, mostly to an invalid value.
func (d *dice) spoil(t *tb.Transfer) {
	ends := []tb.Uint128{{}, tb.AmountMax, d.accounts[0].ID, d.accounts[len(d.accounts)-1].ID}
	switch d.IntN(15) {
	case 0:
		t.Timestamp = 1
	case 1:
		t.Flags |= 1 << (9 + d.IntN(7))
	case 2:
		t.ID = one(d, tb.Uint128{}, tb.AmountMax)
	case 3:
		t.DebitAccountID = one(d, ends...)
	case 4:
		t.CreditAccountID = one(d, ends...)
	case 5:
		t.Amount = d.amount()
	case 6:
		t.PendingID = one(d, tb.Uint128{}, tb.AmountMax, t.ID, d.id(1<<41))
	case 7:
		t.UserData128 = tb.ToUint128(9)
	case 8:
		t.UserData64 = 9
	case 9:
		t.UserData32 = 9
	case 10:
		t.Timeout = one[uint32](d, 0, 3600, 7200)
	case 11:
		t.Ledger = one(d, 0, t.Ledger+1)
	case 12:
		t.Code = one(d, 0, t.Code+1)
	default:
		t.Flags ^= one[uint16](d, flagPending, flagPost, flagVoid, flagBalancing, flagBalancingCredit,
			flagClosingDebit, flagClosingCredit)
	}
}
