//go:build cgo

package tigerbeetle

import (
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// chain builds the call.
func (c *settling) chain(now int64) (*chain, error) {
	u := &c.u
	step := stepOf(u, now)
	if u.Verb == weir.VerbExtend {
		// Another extend may have had this millisecond, under other definitions.
		step = max(step, c.extended+2)
	}
	ch := c.s.newChain(u.ID, step|c.again<<againBits, 2+2*len(c.changes))
	c.tokens(ch, now)
	for i := range c.changes {
		if x := &c.changes[i]; x.carries {
			x.mu.Lock()
			x.refill(ch, i)
			x.mu.Unlock()
		}
	}
	for i := range c.changes {
		if err := c.change(ch, now, i); err != nil {
			return nil, err
		}
	}
	ch.close()
	return ch, nil
}

// tokens ends the lease's token, and makes a new one where the lease lives on.
func (c *settling) tokens(ch *chain, now int64) {
	u := &c.u
	token := transferID(u.ID, c.token, 0)
	if !c.lives() {
		flag := uint16(flagPost)
		if u.Verb == weir.VerbCancel {
			flag = flagVoid
		}
		ch.put(&tb.Transfer{
			ID: transferID(u.ID, stepEnd, 0), PendingID: token, Flags: flag, UserData128: ch.number,
			UserData64: u.Fingerprint, UserData32: endMark,
		}, roleHeader, 0)
		return
	}
	h := head{code: codeAdjusted, fingerprint: uint64(ch.step), amount: uint64(u.Seq)}
	if u.Verb == weir.VerbExtend {
		c.expires = u.Expires(time.UnixMilli(now))
		h.code, h.amount = codeExtended, uint64(c.expires.UnixMilli())
	}
	ch.header(transferID(u.ID, ch.step&stepMask, 0), h)
	ch.resolve(token, flagVoid, 0, 0, 0)
}

// endMark tells the transfer that ends a lease from one that renews its token.
const endMark = 1 << 31

// change adds the events for one holding.
func (c *settling) change(ch *chain, now int64, i int) error {
	x := &c.changes[i]
	x.left, x.undo, x.gained, x.changed = nil, nil, weir.Piece{}, false
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.key.kind == weir.Bucket && x.to > x.from && !x.spot.bucket.counts(now, x.to-x.from) {
		if !x.take.Limit.Shadow {
			return c.unfit(i, "is more than can be counted")
		}
		x.to, x.stays, x.parts = x.from, true, x.holding.Parts
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
			x.changeHolds(ch, now, i)
		}
	}
	if c.u.Verb == weir.VerbAdjust && !x.stays {
		x.record(ch, i)
	}
	return nil
}

func (x *change) changeBucket(ch *chain, i int) {
	t := tb.Transfer{UserData64: uint64(x.to) + 1, UserData32: place(i, x.parts[0].Charge)}
	switch {
	case x.to > x.from:
		t.DebitAccountID, t.CreditAccountID, t.Code = x.limit, x.spent, codeGrown
		t.Amount = tb.ToUint128(uint64(x.to-x.from) * 1000)
		ch.add(&t, roleTake, i)
		x.changed = true
	case x.to < x.from:
		milli, ok := kernel.Milli(x.from - x.to)
		if !ok {
			milli = int64(fundUnits)
		}
		t.DebitAccountID, t.CreditAccountID, t.Code = x.spent, x.limit, codeRefund
		t.Flags, t.Amount = flagBalancing, tb.ToUint128(uint64(milli))
		ch.add(&t, roleRecord, i)
		x.changed = true
	}
	x.left = slices.Clone(x.pieces)
	if len(x.left) > 0 {
		x.left[0].Units = x.to
	}
}

func (x *change) changeBudget(ch *chain, now int64, i int) {
	x.left = slices.Clone(x.pieces)
	if len(x.left) < 2 {
		return
	}
	x.left[0].Units = x.to
	t := tb.Transfer{UserData64: uint64(x.to) + 1, UserData32: place(i, x.parts[0].Charge)}
	account := accountOf(x.left[1])
	switch {
	case x.to > x.from:
		t.DebitAccountID, t.CreditAccountID, t.Code = account, ch.n.vault, codeGrown
		t.Amount = tb.ToUint128(uint64(x.to - x.from))
		if x.pieces[0].Until <= now {
			// The period is over, so it limits no request, and its account takes only what it can count.
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

// record notes what the parts stand for, where no other event of the chain does.
func (x *change) record(ch *chain, i int) {
	same := slices.Equal(x.parts, x.holding.Parts)
	if same || x.changed && len(x.parts) == 1 {
		return
	}
	account := x.limit
	if x.key.kind == weir.Budget && len(x.left) > 1 {
		account = accountOf(x.left[1])
	}
	for _, p := range x.parts {
		ch.part(i, p, account, false)
	}
}

// ended is true for a piece whose units have returned.
func (x *change) ended(now int64, p *weir.Piece) bool { return p.Until <= now || x.over[p.Mark] }

// rest is a time in whole seconds that is not shorter than what is left until an instant.
func rest(now, until int64) uint32 { return uint32(max((until-now+999)/1000, 1)) }

// back voids what a piece stands for.
func (x *change) back(ch *chain, p *weir.Piece, i int) {
	ch.resolve(marked(ch.lease, p.Mark), flagVoid, 0, uint64(x.to)+1, i)
	last := &ch.events[len(ch.events)-1]
	last.role, last.mark = roleBack, p.Mark
	x.undo = append(x.undo, *p)
	x.changed = true
}

// hold takes units until an instant, and returns where they are.
func (x *change) hold(ch *chain, units, until int64, timeout uint32, i int) weir.Piece {
	ch.add(&tb.Transfer{
		DebitAccountID: x.limit, CreditAccountID: ch.n.vault, Amount: tb.ToUint128(uint64(units)),
		Code: codeKept, Flags: flagPending, Timeout: timeout,
		UserData64: uint64(x.to) + 1, UserData32: place(i, x.parts[0].Charge),
	}, roleTake, i)
	x.changed = true
	return weir.Piece{Units: units, Until: until, Mark: ch.mark()}
}

// changeHolds lets units go, what was added last first, or occupies more. What stays keeps its end,
// to the next whole second.
func (x *change) changeHolds(ch *chain, now int64, i int) {
	keep := slices.Clone(x.pieces)
	left := x.from - x.to
	if left < 0 {
		x.gained = x.grow(ch, now, keep, i)
		left = 0
	}
	for k := len(keep) - 1; k >= 0; k-- {
		p := &keep[k]
		n := min(left, p.Units)
		left -= n
		if n > 0 && !x.ended(now, p) {
			x.back(ch, p, i)
			if p.Units > n {
				*p = x.hold(ch, p.Units-n, p.Until, rest(now, p.Until), i)
				continue
			}
		}
		p.Units -= n
	}
	x.left = x.gather(now, keep)
	if x.gained.Units > 0 {
		x.left = append(x.left, x.gained)
	}
}

// gather are the pieces that have units, and a window's first, which says when it ends. Those whose
// units have returned, and which are only counted, are one.
func (x *change) gather(now int64, keep []weir.Piece) []weir.Piece {
	var left []weir.Piece
	for k, p := range keep {
		switch {
		case len(left) > 0 && x.ended(now, &p) && x.ended(now, &left[0]):
			left[0].Units += p.Units
		case p.Units > 0 || k == 0 && x.key.kind == weir.Window:
			left = append(left, p)
		}
	}
	return left
}

// manyPieces is how many pieces a window has before what it grows by is added to one that ends at
// the same time: two events instead of one, so that a lease that grows all the time can still be
// settled.
const manyPieces = 8

// grow occupies more units: until those first reserved return, or, if they have, from now on. What
// it makes a part of the new piece has no units in keep any more.
func (x *change) grow(ch *chain, now int64, keep []weir.Piece, i int) weir.Piece {
	n := x.to - x.from
	length := lengthOf(x.take.Limit)
	until, timeout := now+length.Milliseconds(), uint32(length/time.Second)
	if len(keep) > 0 && !x.ended(now, &keep[0]) {
		until = keep[0].Until
		timeout = rest(now, until)
	}
	for k := len(keep) - 1; k >= 0 && len(keep) >= manyPieces; k-- {
		if p := &keep[k]; p.Units > 0 && p.Until == until && !x.over[p.Mark] {
			x.back(ch, p, i)
			n += p.Units
			p.Units = 0
			break
		}
	}
	return x.hold(ch, n, until, timeout, i)
}

// extend renews the slots that have not timed out.
func (x *change) extend(ch *chain, now int64, i int) {
	x.left = append(x.left, x.pieces...)
	if x.key.kind != weir.Concurrency {
		return
	}
	length := lengthOf(x.take.Limit)
	for k := range x.left {
		p := &x.left[k]
		if p.Units == 0 || x.ended(now, p) {
			continue
		}
		x.back(ch, p, i)
		*p = x.hold(ch, p.Units, now+length.Milliseconds(), uint32(length/time.Second), i)
	}
}
