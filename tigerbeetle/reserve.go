//go:build cgo

package tigerbeetle

import (
	"context"
	"math/rand/v2"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
	"github.com/weir-limiter/weir/tigerbeetle/internal/uint128"
)

// maxTries bounds how often a chain is sent if other servers win each time.
const maxTries = 16

// Reserve takes a reservation by one linked chain in one call. The chain is sent again if another
// server has moved a bucket's anchor in the meantime or has used up the attempt's IDs. If the
// caller's context ends while the chain is in flight, nothing stays charged: see
// [Store.runReserve].
func (s *Store) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if err := s.enter(true); err != nil {
		return err
	}
	defer s.exit()
	earlier, err := s.resumeReserve(ctx, p, out)
	if out.Replay || !out.At.IsZero() || err != nil {
		return err
	}
	superseded, err := s.superseded(ctx, p)
	if err != nil {
		return err
	}
	c := newReserveOp(s, now, p)
	if earlier != nil { // send the same IDs, so that only one of the two chains can succeed
		c.attempt, c.resend = earlier.attempt, true
	}
	c.findLimits()
	if err := s.checkFits(c.takes, c.plan.Keys); err != nil {
		return err
	}
	if superseded { // the cluster has the lease
		err = c.replay(ctx)
	} else {
		err = s.runReserve(ctx, c)
	}
	if err == nil {
		*out = *c.out
	}
	return err
}

// reserveOp is the state of one Reserve.
type reserveOp struct {
	s *Store
	// asked is when the caller asked.
	asked time.Time
	// plan and out are copies, because a chain in flight may outlive the call.
	plan  driver.Plan
	out   *driver.Outcome
	takes []*activeTake
	// attempt is the number of the chain, part of its IDs and of the header: see
	// [reserveOp.nextAttempt].
	attempt int64
	// repeat is false if the engine made the lease ID for this call, so that no earlier call can
	// have used it.
	repeat bool
	// resend is set if an earlier chain of the lease may still be carried out.
	resend bool
	// unknown is set if the last chain was sent and its outcome is unknown, so that the cluster may
	// carry it out.
	unknown bool
}

func newReserveOp(s *Store, now time.Time, p *driver.Plan) *reserveOp {
	c := &reserveOp{
		s: s, asked: now, plan: *p.Clone(), out: p.Outcome(), takes: make([]*activeTake, len(p.Takes)), repeat: !p.New,
	}
	c.plan.Subjects = nil
	return c
}

// A header's user_data_32 holds the number of charges in its low chargeBits bits and the number of
// the attempt above.
const (
	chargeBits  = 8
	attemptBits = 32 - chargeBits
)

// orderedAttempts is the number of attempts of a lease that every server numbers in the same order.
// A denial uses up an ID of the attempt, so it also makes another server's chain of the same
// attempt fail, which could otherwise be charged after the caller was told of the denial.
const orderedAttempts = 4

// nextAttempt moves on to the next attempt, because a failed transfer uses up its ID. Any number of
// servers may deny a lease any number of times before one admits it, so the later attempts have
// random numbers.
func (c *reserveOp) nextAttempt() {
	if c.attempt < orderedAttempts {
		c.attempt++
		return
	}
	c.attempt = orderedAttempts + 1 + rand.Int64N(1<<attemptBits-orderedAttempts-1)
}

// findLimits finds or creates the limit state of each take.
func (c *reserveOp) findLimits() {
	now, version := c.s.clock.nowMS(), c.s.ownVersion()
	takes := make([]activeTake, len(c.plan.Takes))
	for i := range takes {
		t := c.plan.Takes[i]
		takes[i] = activeTake{
			limitState: c.s.states.find(now, &c.s.namespace, limitKey{t.Subject, t.Limit.Name, t.Limit.Kind}),
			Take:       t, cost: t.Cost(), belowCapacity: t.Limit.Capacity - t.Ceiling, version: version,
		}
		takes[i].last.Store(t.Limit)
		c.takes[i] = &takes[i]
	}
}

// takesWhere returns the takes that satisfy a condition.
func (c *reserveOp) takesWhere(are func(*activeTake) bool) []*activeTake {
	var some []*activeTake
	for _, take := range c.takes {
		if are(take) {
			some = append(some, take)
		}
	}
	return some
}

// run sends chains until one has a definite result.
func (c *reserveOp) run(ctx context.Context) error {
	// Read buckets whose definition changes here: other servers may have taken units without moving
	// the anchor, and the new definition applies to the balance that is left.
	if err := c.s.readTakes(ctx, c.takesWhere((*activeTake).redefines)); err != nil {
		return err
	}
	for i := range maxTries {
		if err := c.s.provision(ctx, c.takes); err != nil {
			return err
		}
		for _, s := range c.takes {
			s.observed, s.passed = nil, false
		}
		if done, err := c.deniedFromMemory(ctx); err != nil || done {
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
	c.writeStatuses(c.s.clock.nowMS())
	c.out.Denied, c.out.Contended = true, true
	return nil
}

// send sends one chain and handles its result. It returns false if the chain has to be sent again.
func (c *reserveOp) send(ctx context.Context) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, client.Unavailable(err) // the caller has left
	}
	now, err := c.s.claimAnchors(ctx, c.takes)
	if err != nil {
		return false, err
	}
	defer c.s.releaseAnchors(c.takes)
	if periodEnded(c.takes, now) {
		return false, nil
	}
	c.skipUncountable(now)
	ch := c.buildChain(now)
	if err := c.s.fits(ch); err != nil {
		return false, err
	}
	for _, take := range c.takes {
		take.observed, take.passed, take.takes = nil, false, take.cost
	}
	// The chain is counted in flight before it is sent and until its effect is in the estimates. A
	// read that overlaps it sees one or the other, and does not take it for another server's.
	addInFlight(c.takes, 1, false)
	use := c.s.usage.begin(c.asked, ch.header())
	results, err := c.s.send(context.WithoutCancel(ctx), ch)
	c.unknown = err != nil && !client.IsUnsent(err)
	v := ch.result(results)
	if err == nil {
		markFunded(ch, c.takes, results) // not part of the linked chain, so done even if it failed
		if v.created {
			c.applyTaken(now, v.at)
		}
	}
	use.end(err == nil && v.created, c.unknown, c.uses)
	if err == nil {
		c.s.recycle(ch)
	}
	addInFlight(c.takes, -1, false)
	if err != nil {
		markUncertain(c.takes)
	}
	if err != nil || v.created {
		return err == nil, err
	}
	return c.handleFailure(ctx, now, v)
}

// handleFailure handles a chain that failed: it writes the outcome, or prepares the next attempt.
func (c *reserveOp) handleFailure(ctx context.Context, now int64, v chainResult) (done bool, err error) {
	if v.event.role == roleHeader && exists(v.status) {
		return true, c.replay(ctx)
	}
	if len(c.takes) == 0 { // the chain has only a header, and perhaps keys
		return false, unexpected("create_transfers", v.status.String())
	}
	take := c.takes[v.event.holding]
	switch {
	case v.event.role == roleRefill && exists(v.status):
		c.s.noteForeign()
		return false, c.s.readLimit(ctx, take.limitState)
	case v.status == tb.TransferIDAlreadyFailed:
		c.nextAttempt()
		return false, nil
	case v.status == tb.TransferDebitAccountNotFound, v.status == tb.TransferCreditAccountNotFound:
		c.nextAttempt()
		take.reset()
		return false, nil
	case v.status == tb.TransferExceedsCredits && v.event.role == roleTake:
		c.nextAttempt()
		take.uncountable = true // only a shadow limit is taken without a check
		return false, nil
	case v.status == tb.TransferExceedsCredits:
		c.nextAttempt()
		return c.deny(ctx, now, take)
	case exists(v.status): // another server has an attempt in flight
		c.nextAttempt()
		return false, nil
	}
	return false, unexpected("create_transfers", v.status.String())
}

// buildChain builds the chain of an attempt: funding, header, anchors, checks and takes, and keys.
// The anchors come before the checks, so that a check sees the refilled balance.
func (c *reserveOp) buildChain(now int64) *chain {
	ch := c.s.newChain(c.plan.ID, c.attempt, 1+4*len(c.takes)+len(c.plan.Keys))
	for i, take := range c.takes {
		c.s.fund(ch, take, i)
	}
	c.out.Expires = c.plan.Expires(time.UnixMilli(now))
	ch.addHeader(transferID(c.plan.ID, 0, 0), headerData{
		code: codeLease, fingerprint: c.plan.Fingerprint, amount: uint64(c.out.Expires.UnixMilli()),
		extra: uint32(c.attempt)<<chargeBits | uint32(c.plan.Charges),
	})
	for i, take := range c.takes {
		if take.movesAnchor {
			take.mu.Lock()
			take.refill(ch, i)
			take.mu.Unlock()
		}
	}
	for i, take := range c.takes {
		take.mu.Lock()
		take.appendTake(ch, i)
		take.mu.Unlock()
	}
	ch.keys(c.plan.Keys)
	return ch
}

// appendTake adds the check and the take of one limit. The check makes a pending transfer of the
// units plus what must stay free, which fails if the limit is exceeded. A bucket or budget then
// posts the units alone. Units of a window or slots must return by themselves, so their check is
// voided and a second pending transfer, with a timeout, takes them. A shadow limit is taken without
// a check.
func (s *activeTake) appendTake(ch *chain, holding int) {
	t := s.Take
	to, units := ch.n.vault, uint64(s.cost)
	from := s.account
	posted := s.key.kind == weir.Bucket || s.key.kind == weir.Budget
	switch s.key.kind {
	case weir.Bucket:
		to, units = s.spent, units*1000
	case weir.Budget:
		from = s.period
	}
	if s.uncountable {
		units = 0
	}
	at := packPart(holding, t.Parts[0].Charge)
	timeout := uint32(0)
	if !posted {
		timeout = uint32(lengthOf(t.Limit) / time.Second)
	}
	if !t.Limit.Shadow {
		check := tb.Transfer{
			DebitAccountID: from, CreditAccountID: to, Code: codeCheck,
			Amount: uint128.Number{Lo: units}.Plus(uint128.Number{Lo: s.headroom()}).Uint128(),
			Flags:  flagPending, UserData64: s.payer, UserData32: at,
		}
		if units == 0 {
			check.Timeout = timeout // with no take, only the check records the window's length
		}
		ch.add(&check, roleCheck, holding)
		if posted && units > 0 {
			ch.addVoidOrPost(check.ID, flagPost, units, 0, holding)
		} else {
			ch.addVoidOrPost(check.ID, flagVoid, 0, 0, holding)
		}
	}
	if t.Limit.Shadow || !posted && units > 0 {
		take := tb.Transfer{
			DebitAccountID: from, CreditAccountID: to, Amount: tb.ToUint128(units), Code: codeTake,
			UserData64: s.payer, UserData32: at,
		}
		if !posted {
			take.Flags, take.Timeout = flagPending, timeout
		}
		ch.add(&take, roleTake, holding)
	}
	s.mark = ch.mark()
	if len(t.Parts) > 1 {
		for _, p := range t.Parts {
			ch.addPart(holding, p, from, s.uncountable)
		}
	}
}

// addPart adds a record of the units that one of several charges takes.
func (c *chain) addPart(holding int, p driver.Part, from tb.Uint128, none bool) {
	if none {
		p.Units = 0
	}
	c.add(&tb.Transfer{
		DebitAccountID: from, CreditAccountID: c.n.register, Code: codeKept,
		UserData64: uint64(p.Units) + 1, UserData32: packPart(holding, p.Charge),
	}, roleRecord, holding)
}

// applyTaken updates the estimates after a chain was admitted, and writes the outcome.
func (c *reserveOp) applyTaken(now, at int64) {
	c.out.At = time.UnixMilli(at)
	for i, take := range c.takes {
		taken := &c.out.Taken[i]
		take.mu.Lock()
		if take.movesAnchor {
			take.anchorMoved()
		}
		if take.raiseEstimate(max(now, at)) {
			c.s.noteForeign()
		}
		take.judge(max(now, at), &c.out.Limits[i])
		if !take.uncountable {
			c.out.Limits[i].Available -= take.cost
		} else if take.key.kind != weir.Concurrency {
			taken.Units = 0
		}
		if i == 0 { // for the lease's token; zeros mean that nothing has updated it
			taken.Pieces = append(taken.Pieces, driver.Piece{})
		}
		taken.Pieces = append(taken.Pieces, take.applyTaken(at)...)
		c.out.Expires = leaseEnd(c.out.Expires, take.key.kind, taken.Pieces)
		take.usedAtMS, take.touched = now, now
		take.mu.Unlock()
	}
}

// applyTaken updates the estimate and returns the pieces of what was taken. The second piece of a
// budget holds its period's account. s.mu is held.
func (s *activeTake) applyTaken(at int64) []driver.Piece {
	p := driver.Piece{Units: s.cost, Mark: s.mark}
	if s.uncountable {
		p.Units = 0
	}
	s.added += p.Units
	switch s.key.kind {
	case weir.Bucket:
		s.bucket.balance -= p.Units * 1000
	case weir.Budget:
		s.current(0).used += p.Units
		p.Until = s.periodEnd
		return []driver.Piece{p, accountPiece(s.period)}
	default:
		p.Until = at + lengthOf(s.Limit).Milliseconds()
		s.expiring.Add(p.Until, p.Units)
	}
	return []driver.Piece{p}
}
