//go:build cgo

package tigerbeetle

import (
	"slices"
	"strconv"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

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

// settles refuses an adjust after which the lease might take more events to settle than one call
// holds: it could not be cancelled any more.
func (c *settling) settles(now int64) error {
	if c.u.Verb != weir.VerbAdjust {
		return nil
	}
	events := 2 // the header, and the end of the token
	for i := range c.changes {
		x := &c.changes[i]
		events += len(x.parts)
		switch x.key.kind {
		case weir.Bucket:
			events += 3
		case weir.Budget:
			events++
		default:
			events++
			for k := range x.left {
				if p := &x.left[k]; p.Units > 0 && !x.ended(now, p) {
					events++
				}
			}
		}
	}
	if most := c.s.room(); events > most {
		return &weir.Error{
			Code: weir.Invalid, Field: "totals", Value: strconv.Itoa(events),
			Reason: "are the events that the lease could then take to settle, and one call holds " +
				strconv.Itoa(most) + ": it has grown too often, complete it",
		}
	}
	return nil
}

// book takes in what an applied chain has done.
func (c *settling) book(now int64) {
	for i := range c.changes {
		x := &c.changes[i]
		x.mu.Lock()
		if x.carries {
			x.arrive()
		}
		x.used = now
		if !x.spared {
			x.touched = now
		}
		x.denied = denial{}
		grown := x.to - x.from
		x.added += max(grown, 0)
		x.let += max(-grown, 0)
		switch x.key.kind {
		case weir.Bucket:
			x.spot.bucket.settle(grown)
		case weir.Budget:
			x.bookPeriod(grown)
		default:
			x.bookHolds(now)
		}
		x.mu.Unlock()
	}
}

// settle counts what a lease takes more or gives back.
func (k *bucketKnown) settle(grown int64) {
	if k.anchor.b == 0 {
		return
	}
	if grown >= 0 {
		k.balance -= grown * 1000
		return
	}
	// What it gained until now counts first, so that the refund is cut at the capacity. The anchor
	// stays: spread over both, the sum is the same.
	milli := int64(fundUnits)
	if -grown <= milli/1000 {
		milli = -grown * 1000
	}
	k.balance = k.anchor.rate.Refund(k.balance, milli)
}

func (x *change) bookPeriod(grown int64) {
	if len(x.pieces) < 2 {
		return
	}
	account := accountOf(x.pieces[1])
	for i := range x.periods {
		if p := &x.periods[i]; p.account == account {
			p.used = max(p.used+grown, 0)
			return
		}
	}
}

func (x *change) bookHolds(now int64) {
	x.holds.expire(now)
	for _, p := range x.undo {
		x.holds.remove(p.Until, p.Units)
	}
	was := make(map[int64]bool, len(x.pieces))
	for _, p := range x.pieces {
		was[p.Mark] = true
	}
	for _, p := range x.left {
		if !was[p.Mark] {
			x.holds.Add(p.Until, p.Units)
		}
	}
}

// outcome is the answer to an update that was applied at an instant.
func (c *settling) outcome(at, step int64) *weir.Outcome {
	out := &weir.Outcome{At: time.UnixMilli(at), Taken: make([]weir.Taken, len(c.changes))}
	if !c.lives() {
		return out
	}
	seq, extended := c.seq, c.extended
	switch c.u.Verb {
	case weir.VerbAdjust:
		seq = c.u.Seq
	case weir.VerbExtend:
		extended = step
		out.Expires = c.expires
	}
	for i := range c.changes {
		x := &c.changes[i]
		if c.u.Verb == weir.VerbExtend {
			x.renewed(at)
			out.Expires = outlives(out.Expires, x.take.Limit.Kind, x.left)
		}
		out.Taken[i] = weir.Taken{Units: x.to, Pieces: x.left}
	}
	if len(out.Taken) > 0 {
		first := &out.Taken[0]
		first.Pieces = append([]weir.Piece{tokenPiece(step, seq, extended)}, first.Pieces...)
	}
	return out
}

// renewed makes the slots that an extend has taken end when they do on the cluster, which carried
// it out at an instant.
func (x *change) renewed(at int64) {
	length := lengthOf(x.take.Limit).Milliseconds()
	for k := range x.left {
		p := &x.left[k]
		if taken := !slices.ContainsFunc(x.pieces, func(old weir.Piece) bool { return old.Mark == p.Mark }); taken {
			p.Until = at + length
		}
	}
}
