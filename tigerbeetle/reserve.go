//go:build cgo

package tigerbeetle

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// tries is how often a reservation is sent at most, where others were quicker.
const tries = 16

// Reserve takes a reservation by one linked chain in one call. It is sent again where another
// server moved a bucket's anchor in between, or used up the attempt's ID. A caller whose context
// ends while the cluster has the chain leaves nothing charged: see [Store.run].
func (s *Store) Reserve(ctx context.Context, _ time.Time, p *weir.Plan, out *weir.Outcome) error {
	if err := s.enter(true); err != nil {
		return err
	}
	defer s.leave()
	earlier, err := s.resume(ctx, p, out)
	if out.Replay || !out.At.IsZero() || err != nil {
		return err
	}
	superseded, err := s.superseded(ctx, p)
	if err != nil {
		return err
	}
	c := newReserving(s, p)
	if earlier != nil { // its chain may still be carried out, unless this one uses up its IDs
		c.attempt, c.resends = earlier.attempt, true
	}
	c.seat()
	if err := s.holds(c.seats); err != nil {
		return err
	}
	if superseded { // it was carried out before
		err = c.replay(ctx)
	} else {
		err = s.run(ctx, c)
	}
	if err == nil {
		*out = *c.out
	}
	return err
}

// reserving is one Reserve.
type reserving struct {
	s *Store
	// plan is a copy, and out of its own: a chain that the cluster has may outlive the call.
	plan  weir.Plan
	out   *weir.Outcome
	seats []seat
	all   []*seat
	// attempt tells the chains that were sent apart, and is on the header: see [reserving.another].
	attempt int64
	// repeats is false for a lease that the limiter has made for this call: nobody can have asked
	// for it before.
	repeats bool
	// resends is true if an earlier chain of the lease may still be carried out.
	resends bool
	// unknown is true once a chain was sent that the ledger may carry out although it returned an
	// error.
	unknown bool
}

func newReserving(s *Store, p *weir.Plan) *reserving {
	c := &reserving{
		s: s, plan: *p, out: p.Outcome(),
		seats: make([]seat, len(p.Takes)), all: make([]*seat, 0, len(p.Takes)), repeats: !p.New,
	}
	c.plan.Subjects, c.plan.Takes = nil, slices.Clone(p.Takes)
	for i := range c.plan.Takes {
		t := &c.plan.Takes[i]
		t.Parts = slices.Clone(t.Parts)
	}
	return c
}

// An attempt's number stands above the number of charges on the header.
const (
	chargeBits  = 8
	attemptBits = 32 - chargeBits
)

// orderedAttempts is how many attempts of a lease follow one another on every server. So a denial
// by one server uses up the IDs of a chain of another server that is still under way, and that
// one fails.
const orderedAttempts = 4

// another takes the next attempt, because a denial uses up the IDs of one. A lease may be denied
// any number of times, by any number of servers, before it is admitted, so the later ones are
// random.
func (c *reserving) another() {
	if c.attempt < orderedAttempts {
		c.attempt++
		return
	}
	c.attempt = orderedAttempts + 1 + rand.Int64N(1<<attemptBits-orderedAttempts-1)
}

// seat finds the limits.
func (c *reserving) seat() {
	now, version := c.s.clock.ms(), c.s.versionMine()
	for i := range c.plan.Takes {
		t := &c.plan.Takes[i]
		c.seats[i] = seat{
			spot: c.s.spots.find(now, &c.s.namespace, limitKey{t.Subject, t.Limit.Name, t.Limit.Kind}),
			take: t, cost: t.Cost(), lowered: t.Limit.Capacity - t.Ceiling, version: version,
		}
		c.seats[i].last.Store(t.Limit)
		c.all = append(c.all, &c.seats[i])
	}
}

// those are the seats of which something is so.
func (c *reserving) those(are func(*seat) bool) []*seat {
	var some []*seat
	for _, seat := range c.all {
		if are(seat) {
			some = append(some, seat)
		}
	}
	return some
}

// run sends chains until one has an answer.
func (c *reserving) run(ctx context.Context) error {
	// Others may have taken from it without moving its anchor, which decides what becomes of it.
	if err := c.s.readSeats(ctx, c.those((*seat).redefined)); err != nil {
		return err
	}
	for i := range tries {
		if err := c.s.provision(ctx, c.seats); err != nil {
			return err
		}
		for _, s := range c.all {
			s.seen, s.passed = nil, false
		}
		if done, err := c.remembered(ctx); err != nil || done {
			return err
		}
		if i > 0 {
			c.s.counts.again.Add(1)
		}
		done, err := c.send(ctx)
		if err != nil || done {
			return err
		}
	}
	c.s.counts.contended.Add(1)
	c.statuses(c.s.clock.ms())
	c.out.Denied, c.out.Contended = true, true
	return nil
}

// send sends one chain and reads the answer. It is not done where the chain is to be sent anew.
func (c *reserving) send(ctx context.Context) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, unavailable(err) // nobody waits for it
	}
	now, err := c.s.board(ctx, c.all)
	if err != nil {
		return false, err
	}
	defer c.s.land(c.all)
	if overdue(c.all, now) {
		return false, nil
	}
	c.bound(now)
	ch := c.chain(now)
	if err := c.s.fits(ch); err != nil {
		return false, err
	}
	for _, seat := range c.all {
		seat.seen, seat.passed, seat.adds = nil, false, seat.cost
	}
	fly(c.all, 1, false)
	results, err := c.s.transfer(context.WithoutCancel(ctx), ch)
	c.unknown = err != nil && !isUnsent(err)
	v := ch.judge(results)
	if err == nil {
		fundedAll(ch, c.seats, results)
		if v.created {
			c.take(now, v.at)
		}
		c.s.recycle(ch)
	}
	fly(c.all, -1, false)
	if err != nil {
		lost(c.all)
	}
	if err != nil || v.created {
		return err == nil, err
	}
	return c.refused(ctx, now, v)
}

// refused finds out what a chain that failed means.
func (c *reserving) refused(ctx context.Context, now int64, v verdict) (done bool, err error) {
	if v.event.role == roleHeader && exists(v.status) {
		return true, c.replay(ctx)
	}
	if len(c.seats) == 0 { // the chain has a header alone, and perhaps keys
		return false, unexpected("create_transfers", v.status.String())
	}
	seat := &c.seats[v.event.holding]
	switch {
	case v.event.role == roleRefill && exists(v.status):
		c.s.shares()
		return false, c.s.readSpot(ctx, seat.spot)
	case v.status == tb.TransferIDAlreadyFailed:
		c.another()
		return false, nil
	case v.status == tb.TransferDebitAccountNotFound, v.status == tb.TransferCreditAccountNotFound:
		c.another()
		seat.forget()
		return false, nil
	case v.status == tb.TransferExceedsCredits && v.event.role == roleTake:
		c.another()
		seat.refused = true // a shadow limit that cannot count more
		return false, nil
	case v.status == tb.TransferExceedsCredits:
		c.another()
		return c.deny(ctx, now, seat)
	case exists(v.status): // an attempt of another server, on its way
		c.another()
		return false, nil
	}
	return false, unexpected("create_transfers", v.status.String())
}

// chain builds the call.
func (c *reserving) chain(now int64) *chain {
	ch := c.s.newChain(c.plan.ID, c.attempt, 1+4*len(c.seats)+len(c.plan.Keys))
	for i := range c.seats {
		c.s.fund(ch, &c.seats[i], i)
	}
	c.out.Expires = c.plan.Expires(time.UnixMilli(now))
	ch.header(transferID(c.plan.ID, 0, 0), head{
		code: codeLease, fingerprint: c.plan.Fingerprint, amount: uint64(c.out.Expires.UnixMilli()),
		extra: uint32(c.attempt)<<chargeBits | uint32(c.plan.Charges),
	})
	for i := range c.seats {
		if seat := &c.seats[i]; seat.carries {
			seat.mu.Lock()
			seat.refill(ch, i)
			seat.mu.Unlock()
		}
	}
	for i := range c.seats {
		seat := &c.seats[i]
		seat.mu.Lock()
		seat.ask(ch, c.plan.Fingerprint, i)
		seat.mu.Unlock()
	}
	ch.keys(c.plan.Keys)
	ch.close()
	return ch
}

// ask adds the check and the take.
func (s *seat) ask(ch *chain, fingerprint uint64, holding int) {
	t := s.take
	to, units := ch.n.vault, uint64(s.cost)
	from := s.limit
	posted := s.key.kind == weir.Bucket || s.key.kind == weir.Budget
	switch s.key.kind {
	case weir.Bucket:
		to, units = s.spent, units*1000
	case weir.Budget:
		from = s.period
	}
	if s.refused {
		units = 0
	}
	at := place(holding, t.Parts[0].Charge)
	timeout := uint32(0)
	if !posted {
		timeout = uint32(lengthOf(t.Limit) / time.Second)
	}
	if !t.Limit.Shadow {
		check := tb.Transfer{
			DebitAccountID: from, CreditAccountID: to, Code: codeCheck,
			Amount: wideNumber{lo: units}.plus(wideNumber{lo: s.slack()}).id(),
			Flags:  flagPending, UserData64: fingerprint, UserData32: at,
		}
		if units == 0 {
			check.Timeout = timeout // nothing else tells how long the window is
		}
		ch.add(&check, roleCheck, holding)
		if posted && units > 0 {
			ch.resolve(check.ID, flagPost, units, 0, holding)
		} else {
			ch.resolve(check.ID, flagVoid, 0, 0, holding)
		}
	}
	if t.Limit.Shadow || !posted && units > 0 {
		take := tb.Transfer{
			DebitAccountID: from, CreditAccountID: to, Amount: tb.ToUint128(units), Code: codeTake,
			UserData64: fingerprint, UserData32: at,
		}
		if !posted {
			take.Flags, take.Timeout = flagPending, timeout
		}
		ch.add(&take, roleTake, holding)
	}
	s.at = ch.mark()
	if len(t.Parts) > 1 {
		for _, p := range t.Parts {
			ch.part(holding, p, from, s.refused)
		}
	}
}

// part records what one of several charges stands for.
func (c *chain) part(holding int, p weir.Part, from tb.Uint128, none bool) {
	if none {
		p.Units = 0
	}
	c.add(&tb.Transfer{
		DebitAccountID: from, CreditAccountID: c.n.register, Code: codeKept,
		UserData64: uint64(p.Units) + 1, UserData32: place(holding, p.Charge),
	}, roleRecord, holding)
}

// take notes what an admitted chain has taken, and where it is.
func (c *reserving) take(now, at int64) {
	c.out.At = time.UnixMilli(at)
	for i := range c.seats {
		seat, taken := &c.seats[i], &c.out.Taken[i]
		seat.mu.Lock()
		if seat.carries {
			seat.arrive()
		}
		if seat.admitted(max(now, at)) {
			c.s.shares()
		}
		seat.judge(max(now, at), &c.out.Limits[i])
		if !seat.refused {
			c.out.Limits[i].Available -= seat.cost
		} else if seat.key.kind != weir.Concurrency {
			taken.Units = 0
		}
		if i == 0 { // the lease's token: see settling
			taken.Pieces = append(taken.Pieces, weir.Piece{})
		}
		taken.Pieces = append(taken.Pieces, seat.book(at)...)
		c.out.Expires = outlives(c.out.Expires, seat.key.kind, taken.Pieces)
		seat.used, seat.touched = now, now
		seat.mu.Unlock()
	}
}

// book counts what was taken, and says where it is. A budget's second piece is its period's
// account.
func (s *seat) book(at int64) []weir.Piece {
	p := weir.Piece{Units: s.cost, Mark: s.at}
	if s.refused {
		p.Units = 0
	}
	s.added += p.Units
	switch s.key.kind {
	case weir.Bucket:
		s.bucket.balance -= p.Units * 1000
	case weir.Budget:
		s.current(0).used += p.Units
		p.Until = s.periodEnd
		return []weir.Piece{p, accountPiece(s.period)}
	default:
		p.Until = at + lengthOf(s.take.Limit).Milliseconds()
		s.holds.Add(p.Until, p.Units)
	}
	return []weir.Piece{p}
}
