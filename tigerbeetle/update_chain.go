//go:build cgo

package tigerbeetle

import (
	"math/rand/v2"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// buildChain builds the chain of an update: tokens, anchors, and the changes of the holdings.
func (c *updateOp) buildChain(now int64) (*chain, error) {
	ch := c.s.newChain(c.u.ID, c.step(now)|c.attempts<<againBits, 2+2*len(c.changes))
	c.tokens(ch, now)
	for i := range c.changes {
		if x := &c.changes[i]; x.movesAnchor {
			x.mu.Lock()
			x.refill(ch, i)
			x.mu.Unlock()
		}
	}
	for i := range c.changes {
		if err := c.appendChange(ch, now, i); err != nil {
			return nil, err
		}
	}
	return ch, nil
}

// tokens adds the events that end the lease's token and, if the lease stays live, make a new one.
func (c *updateOp) tokens(ch *chain, now int64) {
	u := &c.u
	token := transferID(u.ID, c.token, 0)
	nonce := rand.Uint32()>>1 | 1 // below endMark
	if !c.leaseLives() {
		flag := uint16(flagPost)
		if u.Verb == weir.VerbCancel {
			flag = flagVoid
		}
		ch.addWithID(&tb.Transfer{
			ID: transferID(u.ID, stepEnd, 0), PendingID: token, Flags: flag, UserData128: ch.number,
			UserData64: u.Fingerprint, UserData32: endMark | nonce,
		}, roleHeader, 0)
		return
	}
	h := headerData{
		code: codeAdjusted, fingerprint: uint64(ch.step), amount: uint64(u.Seq), extra: nonce,
	}
	if u.Verb == weir.VerbExtend {
		c.expires = u.Expires(time.UnixMilli(now))
		h.code, h.amount = codeExtended, uint64(c.expires.UnixMilli())
	}
	ch.addHeader(transferID(u.ID, ch.step&stepMask, 0), h)
	ch.addVoidOrPost(token, flagVoid, 0, 0, 0)
}

// endMark in user_data_32 distinguishes the transfer that ends a lease from one that renews its
// token. The other bits are random, so that a server whose call had no answer can tell whether its
// own chain was carried out, or another one for the same update.
const endMark = 1 << 31

// appendChange adds the events for one holding.
func (c *updateOp) appendChange(ch *chain, now int64, i int) error {
	x := &c.changes[i]
	x.after, x.voids, x.grown, x.changed = nil, nil, driver.Piece{}, false
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.key.kind == weir.Bucket && x.to > x.from && !x.limitState.bucket.fits(now, x.to-x.from) {
		if !x.Limit.Shadow {
			return c.countError(i, "is more than a limit can count")
		}
		x.to, x.unchanged, x.parts = x.from, true, x.holding.Parts
	}
	switch x.key.kind {
	case weir.Bucket:
		x.changeBucket(ch, i)
	case weir.Budget:
		x.changeBudget(ch, now, i)
	default:
		if c.u.Verb == weir.VerbExtend {
			x.extend(ch, now, i)
		} else {
			x.changeExpiring(ch, now, i)
		}
	}
	if c.u.Verb == weir.VerbAdjust && !x.unchanged {
		x.record(ch, i)
	}
	return nil
}

func (x *activeChange) changeBucket(ch *chain, i int) {
	t := tb.Transfer{UserData64: uint64(x.to) + 1, UserData32: packPart(i, x.parts[0].Charge)}
	switch {
	case x.to > x.from:
		t.DebitAccountID, t.CreditAccountID, t.Code = x.account, x.spent, codeGrown
		t.Amount = tb.ToUint128(uint64(x.to-x.from) * 1000)
		ch.add(&t, roleTake, i)
		x.changed = true
	case x.to < x.from:
		milli, ok := kernel.Milli(x.from - x.to)
		if !ok {
			milli = int64(fundUnits)
		}
		t.DebitAccountID, t.CreditAccountID, t.Code = x.spent, x.account, codeRefund
		t.Flags, t.Amount = flagBalancing, tb.ToUint128(uint64(milli))
		ch.add(&t, roleRecord, i)
		x.changed = true
	}
	x.after = slices.Clone(x.pieces)
	if len(x.after) > 0 {
		x.after[0].Units = x.to
	}
}

func (x *activeChange) changeBudget(ch *chain, now int64, i int) {
	x.after = slices.Clone(x.pieces)
	if len(x.after) < 2 {
		return
	}
	x.after[0].Units = x.to
	t := tb.Transfer{UserData64: uint64(x.to) + 1, UserData32: packPart(i, x.parts[0].Charge)}
	account := accountOf(x.after[1])
	switch {
	case x.to > x.from:
		t.DebitAccountID, t.CreditAccountID, t.Code = account, ch.n.vault, codeGrown
		t.Amount = tb.ToUint128(uint64(x.to - x.from))
		if x.pieces[0].Until <= now {
			// The period is over and limits no request any more. Its account takes no more than it
			// can count.
			t.Flags = flagBalancing
		}
		ch.add(&t, roleTake, i)
		x.changed = true
	case x.to < x.from:
		t.DebitAccountID, t.CreditAccountID, t.Code = ch.n.vault, account, codeRefund
		t.Amount = tb.ToUint128(uint64(x.from - x.to))
		ch.add(&t, roleRecord, i)
		x.changed = true
	}
}

// record adds records of what the parts stand for, unless another event of the chain says it.
func (x *activeChange) record(ch *chain, i int) {
	same := slices.Equal(x.parts, x.holding.Parts)
	if same || x.changed && len(x.parts) == 1 {
		return
	}
	account := x.account
	if x.key.kind == weir.Budget && len(x.after) > 1 {
		account = accountOf(x.after[1])
	}
	for _, p := range x.parts {
		ch.addPart(i, p, account, false)
	}
}

// hasReturned reports whether a piece's units have returned, by the clock or because a chain has
// failed on it.
func (x *activeChange) hasReturned(now int64, p *driver.Piece) bool {
	return p.Until <= now || x.returnedMarks[p.Mark]
}

// remainingSeconds returns the time until an instant, rounded up to whole seconds, at least one.
func remainingSeconds(now, until int64) uint32 { return uint32(max((until-now+999)/1000, 1)) }

// voidPiece adds the event that voids a piece.
func (x *activeChange) voidPiece(ch *chain, p *driver.Piece, i int) {
	ch.addVoidOrPost(markedID(ch.lease, p.Mark), flagVoid, 0, uint64(x.to)+1, i)
	last := &ch.events[len(ch.events)-1]
	last.role, last.mark = roleBack, p.Mark
	x.voids = append(x.voids, *p)
	x.changed = true
}

// appendHold adds the event that takes units until an instant, and returns their piece.
func (x *activeChange) appendHold(ch *chain, units, until int64, timeout uint32, i int) driver.Piece {
	ch.add(&tb.Transfer{
		DebitAccountID: x.account, CreditAccountID: ch.n.vault, Amount: tb.ToUint128(uint64(units)),
		Code: codeKept, Flags: flagPending, Timeout: timeout,
		UserData64: uint64(x.to) + 1, UserData32: packPart(i, x.parts[0].Charge),
	}, roleTake, i)
	x.changed = true
	return driver.Piece{Units: units, Until: until, Mark: ch.mark()}
}

// changeExpiring returns units, the piece that ends last first, or takes more. A piece that is
// returned in part is voided, and its rest is taken again until the same end, rounded up to the
// next whole second.
func (x *activeChange) changeExpiring(ch *chain, now int64, i int) {
	keep := slices.Clone(x.pieces)
	left := x.from - x.to
	if left < 0 {
		x.grown = x.grow(ch, now, keep, i)
		left = 0
	}
	for k := len(keep) - 1; k >= 0; k-- {
		p := &keep[k]
		n := min(left, p.Units)
		left -= n
		if n > 0 && !x.hasReturned(now, p) {
			x.voidPiece(ch, p, i)
			if p.Units > n {
				*p = x.appendHold(ch, p.Units-n, p.Until, remainingSeconds(now, p.Until), i)
				continue
			}
		}
		p.Units -= n
	}
	x.after = x.keptPieces(now, keep)
	if x.grown.Units > 0 {
		x.after = append(x.after, x.grown)
	}
}

// keptPieces returns the pieces that have units, and a window's first piece even without, because
// it says when the window ends. Pieces whose units have returned count but cannot be voided; they
// are joined in one.
func (x *activeChange) keptPieces(now int64, keep []driver.Piece) []driver.Piece {
	var left []driver.Piece
	for k, p := range keep {
		switch {
		case len(left) > 0 && x.hasReturned(now, &p) && x.hasReturned(now, &left[0]):
			left[0].Units += p.Units
		case p.Units > 0 || k == 0 && x.key.kind == weir.Window:
			left = append(left, p)
		}
	}
	return left
}

// maxWindowPieces is the number of pieces from which a growing window joins new units with a piece
// that ends at the same time. That costs two events instead of one, but bounds the pieces of a
// lease that keeps growing, so that one call can still complete or cancel it.
const maxWindowPieces = 8

// grow takes more units: until the first piece ends, or for the limit's full length if it has
// ended. It sets the units of a piece that it joins with the new one to zero in keep.
func (x *activeChange) grow(ch *chain, now int64, keep []driver.Piece, i int) driver.Piece {
	n := x.to - x.from
	length := lengthOf(x.Limit)
	until, timeout := now+length.Milliseconds(), uint32(length/time.Second)
	if len(keep) > 0 && !x.hasReturned(now, &keep[0]) {
		until = keep[0].Until
		timeout = remainingSeconds(now, until)
	}
	for k := len(keep) - 1; k >= 0 && len(keep) >= maxWindowPieces; k-- {
		if p := &keep[k]; p.Units > 0 && p.Until == until && !x.returnedMarks[p.Mark] {
			x.voidPiece(ch, p, i)
			n += p.Units
			p.Units = 0
			break
		}
	}
	return x.appendHold(ch, n, until, timeout, i)
}

// extend renews the slots that have not timed out.
func (x *activeChange) extend(ch *chain, now int64, i int) {
	x.after = append(x.after, x.pieces...)
	if x.key.kind != weir.Concurrency {
		return
	}
	length := lengthOf(x.Limit)
	for k := range x.after {
		p := &x.after[k]
		if p.Units == 0 || x.hasReturned(now, p) {
			continue
		}
		x.voidPiece(ch, p, i)
		*p = x.appendHold(ch, p.Units, now+length.Milliseconds(), uint32(length/time.Second), i)
	}
}
