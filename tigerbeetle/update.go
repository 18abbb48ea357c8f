//go:build cgo

package tigerbeetle

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// The steps of a lease. Steps below stepAdjust are the attempts of its reservation.
const (
	stepAdjust = 1 << attemptBits // even: stepAdjust plus twice the sequence number
	stepExtend = stepAdjust + 1   // odd: stepExtend plus twice the millisecond
	stepEnd    = 1 << 46
	// A chain that is sent again with other IDs has the number of the repeat above the step.
	againBits = 47
	stepMask  = 1<<againBits - 1

	// farSeq is the first sequence number that has no step of its own below stepEnd.
	farSeq = 1 << 44
)

// step returns the step of the update. The same adjust, complete or cancel of a lease has the same
// step on every server, so of two servers that send it only one succeeds.
//
// An adjust with a sequence number of farSeq or more has the step after the last extend instead,
// with stepEnd added. Every later adjust of the lease has a higher sequence number, and each extend
// or far adjust takes a step above the highest that either has used, so no two updates of a lease
// share a step.
func (c *updateOp) step(now int64) int64 {
	switch {
	case c.u.Verb == weir.VerbExtend:
		// Another extend may have used this millisecond, under other definitions.
		return max(stepExtend+2*now, c.extended+2)
	case c.u.Verb == weir.VerbAdjust && c.u.Seq < farSeq:
		return stepAdjust + 2*c.u.Seq
	case c.u.Verb == weir.VerbAdjust:
		return stepEnd + max(c.extended, stepExtend) + 1
	}
	return stepEnd
}

// extendedBy returns the highest step of an extend, given the highest so far and the step of the
// next token. A far adjust counts as the extend whose place it took.
func extendedBy(extended, step int64) int64 {
	switch {
	case step > stepEnd: // of a far adjust
		return max(extended, step-stepEnd+1)
	case step&1 == stepExtend&1:
		return max(extended, step)
	}
	return extended
}

// Update makes a lease stand for other totals by one linked chain in one call: all of it or
// nothing. It is refused, with [weir.Invalid] and before anything is applied, if a count would no
// longer fit. The chain ends the lease's token, so that of two servers that update the lease at the
// same time one fails: its update is stale.
func (s *Store) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	if err := s.enter(true); err != nil {
		return err
	}
	defer s.exit()
	c := newUpdateOp(s, now, u)
	// The chain continues after the context has ended, and its results are still counted.
	found, err := client.Await(ctx, func() (*driver.Outcome, error) { return c.run(ctx) })
	if err == nil {
		*out = *found
	}
	return err
}

// run sends chains until one has a definite result. The outcome is nil if an abandoned lease is not
// to be withdrawn.
func (c *updateOp) run(ctx context.Context) (*driver.Outcome, error) {
	if len(c.changes) == 0 && !c.withdrawing { // no holding carries the lease's token
		h, err := c.s.readHistory(ctx, c.u.ID)
		if err != nil || h == nil {
			return nil, cmp.Or(err, unknown(c.u.ID))
		}
		if h.record.State != driver.LeaseLive {
			return nil, &driver.StaleError{Lease: &h.record}
		}
		c.token, c.seq, c.extended = h.token(), h.record.Seq, h.extended
	}
	for i := range maxTries {
		if i > 0 {
			c.s.counts.again.Add(1)
		}
		out, err := c.attempt(ctx)
		if err != nil || out != nil || c.claimedElsewhere {
			return out, err
		}
	}
	return nil, &weir.Error{Code: weir.Unavailable,
		Reason: "other servers changed the lease during every attempt"}
}

// updateOp is the state of one Update.
type updateOp struct {
	s *Store
	// asked is when the caller asked.
	asked time.Time
	// u is a copy without the changes, because a chain in flight may outlive the call.
	u       driver.Update
	changes []activeChange
	// token is the step of the lease's token, and seq the sequence number of the adjust that the
	// holdings reflect.
	token, seq int64
	// extended is the highest step of an extend of the lease, or of a far adjust that took the
	// place of one, as far as it is known here.
	extended int64
	// expires is when the lease ends after an extend.
	expires time.Time
	// attempts counts the chains that used up their IDs.
	attempts int64
	// withdrawing is set for an abandoned lease, which is given back as it was reserved or not at
	// all. claimedElsewhere is set once another caller is known to have the lease or to have ended
	// it.
	withdrawing, claimedElsewhere bool
}

// activeChange is a change of one holding while the store works on it.
type activeChange struct {
	activeTake
	holding  driver.Holding
	pieces   []driver.Piece
	from, to int64
	used     int64
	parts    []driver.Part
	// unchanged is set if a shadow limit cannot count more, so that the parts stay as they were.
	unchanged bool
	// returnedMarks are the marks of the pieces that have already expired on the cluster.
	returnedMarks map[int64]bool

	// after are the pieces after the chain, voids those that it voids, and grown the one that it
	// adds. changed is set if an event of the chain records the holding's new total.
	after   []driver.Piece
	voids   []driver.Piece
	grown   driver.Piece
	changed bool
}

func newUpdateOp(s *Store, asked time.Time, u *driver.Update) *updateOp {
	c := &updateOp{s: s, asked: asked, u: *u, changes: make([]activeChange, len(u.Changes))}
	c.u.Changes = nil
	now := s.clock.nowMS()
	for i := range u.Changes {
		c.changes[i].begin(s, now, &u.Changes[i])
	}
	if len(c.changes) > 0 {
		x := &c.changes[0]
		if len(x.pieces) > 0 {
			c.token, c.seq, c.extended = ofToken(x.pieces[0])
			x.pieces = x.pieces[1:]
		}
	}
	for i := range c.changes {
		x := &c.changes[i]
		x.skipped = u.Verb == weir.VerbExtend && x.key.kind != weir.Concurrency
	}
	return c
}

// begin copies a change, because a chain in flight may outlive the call.
func (x *activeChange) begin(s *Store, now int64, of *driver.Change) {
	x.holding = *of.Holding
	x.holding.Parts = slices.Clone(x.holding.Parts)
	take := x.holding.Take
	take.Limit = of.Limit
	x.activeTake = activeTake{
		limitState: s.states.find(now, &s.namespace, limitKey{take.Subject, of.Limit.Name, of.Limit.Kind}), Take: &take,
	}
	x.pieces, x.parts = slices.Clone(x.holding.Pieces), slices.Clone(of.Parts)
	x.from, x.to, x.used = of.From, of.To, of.Used
}

// attempt sends a chain, unless the lease is known to have a later adjust. It returns nil if it has
// to be repeated.
func (c *updateOp) attempt(ctx context.Context) (*driver.Outcome, error) {
	if c.u.Verb == weir.VerbAdjust && c.u.Seq <= c.seq {
		return nil, c.stale(ctx)
	}
	if err := c.readUnknown(ctx); err != nil {
		return nil, err
	}
	return c.send(ctx)
}

// readUnknown reads the buckets that this process has not used, because their anchors are not
// known.
func (c *updateOp) readUnknown(ctx context.Context) error {
	var unknown []*limitState
	for i := range c.changes {
		x := &c.changes[i]
		x.refundsOnly = x.to <= x.from
		x.mu.Lock()
		ready := x.accountsExist || x.key.kind != weir.Bucket
		x.mu.Unlock()
		if !ready {
			unknown = append(unknown, x.limitState)
		}
	}
	return c.s.readLimits(ctx, unknown)
}

// leaseLives reports whether the lease is still live after the update.
func (c *updateOp) leaseLives() bool { return !c.u.Ends() }

func (c *updateOp) countError(i int, reason string) error {
	x := &c.changes[i]
	return &weir.Error{
		Code: weir.Invalid, Field: "totals." + x.holding.Limit.Name,
		Value: strconv.FormatInt(x.to, 10), Reason: reason,
	}
}

// send sends one chain. It returns nil if the chain has to be sent again.
func (c *updateOp) send(ctx context.Context) (*driver.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, client.Unavailable(err) // the caller has left
	}
	all := make([]*activeTake, 0, len(c.changes))
	for i := range c.changes {
		all = append(all, &c.changes[i].activeTake)
	}
	now, err := c.s.claimAnchors(ctx, all)
	if err != nil {
		return nil, err
	}
	defer c.s.releaseAnchors(all)
	ch, err := c.buildChain(now)
	if err != nil {
		return nil, err
	}
	if err := c.s.fits(ch); err != nil {
		return nil, err
	}
	if err := c.checkSettleable(now); err != nil {
		return nil, err
	}
	for i := range c.changes {
		x := &c.changes[i]
		x.takes, x.returns = max(x.to-x.from, 0), max(x.from-x.to, 0)
	}
	addInFlight(all, 1, true) // until the effect is in the estimates: see reserveOp.send
	use := c.s.usage.begin(c.asked, ch.header())
	results, err := c.s.send(context.WithoutCancel(ctx), ch)
	v := ch.result(results)
	created := err == nil && v.created
	if created {
		c.applyUpdated(now)
	}
	use.end(created, err != nil && !client.IsUnsent(err), c.uses)
	addInFlight(all, -1, true)
	if err != nil {
		markUncertain(all)
		return nil, err
	}
	step := ch.step & stepMask
	c.s.recycle(ch)
	if !v.created {
		return c.handleFailure(ctx, v)
	}
	return c.outcome(v.at, step), nil
}

// handleFailure handles a chain that failed: it returns an error, or nil after it has corrected
// what the next chain is made from.
func (c *updateOp) handleFailure(ctx context.Context, v chainResult) (*driver.Outcome, error) {
	if v.event.role == roleHeader && exists(v.status) {
		return nil, c.stale(ctx)
	}
	switch v.status {
	case tb.TransferPendingTransferAlreadyVoided, tb.TransferPendingTransferAlreadyPosted:
		return nil, c.stale(ctx)
	}
	if len(c.changes) == 0 { // the chain has only a header and the end of the token
		return nil, unexpected("create_transfers", v.status.String())
	}
	x := &c.changes[v.event.holding]
	switch {
	case v.event.role == roleRefill && exists(v.status):
		return nil, c.s.readLimit(ctx, x.limitState)
	case v.status == tb.TransferPendingTransferExpired && v.event.role == roleBack:
		if x.returnedMarks == nil {
			x.returnedMarks = make(map[int64]bool)
		}
		x.returnedMarks[v.event.mark] = true
		return nil, nil // it has to be sent again
	case v.status == tb.TransferIDAlreadyFailed:
		c.attempts++
		return nil, nil // it has to be sent again
	case v.status == tb.TransferExceedsCredits:
		c.attempts++
		if x.Limit.Shadow {
			x.to, x.unchanged, x.parts = x.from, true, x.holding.Parts
			return nil, nil // it has to be sent again
		}
		return nil, c.countError(v.event.holding, "is more than a limit can count")
	case exists(v.status):
		return nil, c.stale(ctx)
	}
	return nil, unexpected("create_transfers", v.status.String())
}

// stale reads a lease that another caller, or an earlier try of this update, has changed, and
// returns it to the engine in a StaleError. A lease that is being withdrawn is left alone.
func (c *updateOp) stale(ctx context.Context) error {
	if c.withdrawing {
		c.claimedElsewhere = true
		return nil
	}
	h, err := c.s.readHistory(ctx, c.u.ID)
	if err != nil {
		return err
	}
	if h == nil {
		return unknown(c.u.ID)
	}
	if h.record.State == driver.LeaseLive && len(h.record.Holdings) != len(c.changes) {
		return unexpected("query_transfers", "other holdings of the lease")
	}
	return &driver.StaleError{Lease: &h.record}
}

func unknown(id weir.LeaseID) error {
	return &weir.Error{Code: weir.UnknownLease, Field: "lease_id", Value: id.String()}
}

// outcome returns the outcome of an update that was applied at an instant.
func (c *updateOp) outcome(at, step int64) *driver.Outcome {
	out := &driver.Outcome{At: time.UnixMilli(at), Taken: make([]driver.Taken, len(c.changes))}
	if !c.leaseLives() {
		return out
	}
	seq, extended := c.seq, extendedBy(c.extended, step)
	switch c.u.Verb {
	case weir.VerbAdjust:
		seq = c.u.Seq
	case weir.VerbExtend:
		out.Expires = c.expires
	}
	for i := range c.changes {
		x := &c.changes[i]
		if c.u.Verb == weir.VerbExtend {
			x.renewed(at)
			out.Expires = leaseEnd(out.Expires, x.Limit.Kind, x.after)
		}
		out.Taken[i] = driver.Taken{Units: x.to, Pieces: x.after}
	}
	if len(out.Taken) > 0 {
		first := &out.Taken[0]
		first.Pieces = append([]driver.Piece{tokenPiece(step, seq, extended)}, first.Pieces...)
	}
	return out
}

// checkSettleable refuses an adjust after which a complete or cancel of the lease might need more
// events than one call holds. Without it the lease could grow until it can only expire.
func (c *updateOp) checkSettleable(now int64) error {
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
			for k := range x.after {
				if p := &x.after[k]; p.Units > 0 && !x.hasReturned(now, p) {
					events++
				}
			}
		}
	}
	if most := c.s.maxEvents(); events > most {
		return &weir.Error{
			Code: weir.Invalid, Field: "totals", Value: strconv.Itoa(events),
			Reason: "is the number of events that settling the lease could take, and one call has at most " +
				strconv.Itoa(most) + ": the lease has grown too often, so complete it",
		}
	}
	return nil
}

// applyUpdated updates the estimates after a chain was carried out.
func (c *updateOp) applyUpdated(now int64) {
	for i := range c.changes {
		x := &c.changes[i]
		x.mu.Lock()
		if x.movesAnchor {
			x.anchorMoved()
		}
		x.usedAtMS = now
		if !x.skipped {
			x.touched = now
		}
		x.denied = rememberedDenial{}
		grown := x.to - x.from
		x.added += max(grown, 0)
		x.returned += max(-grown, 0)
		switch x.key.kind {
		case weir.Bucket:
			x.limitState.bucket.applyDelta(grown)
		case weir.Budget:
			x.applyPeriod(grown)
		default:
			x.applyExpiring(now)
		}
		x.mu.Unlock()
	}
}

func (x *activeChange) applyPeriod(grown int64) {
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

func (x *activeChange) applyExpiring(now int64) {
	x.expiring.expire(now)
	for _, p := range x.voids {
		x.expiring.remove(p.Until, p.Units)
	}
	was := make(map[int64]bool, len(x.pieces))
	for _, p := range x.pieces {
		was[p.Mark] = true
	}
	for _, p := range x.after {
		if !was[p.Mark] {
			x.expiring.Add(p.Until, p.Units)
		}
	}
}

// renewed sets the ends of the slots that an extend has renewed, from when the cluster carried it
// out.
func (x *activeChange) renewed(at int64) {
	length := lengthOf(x.Limit).Milliseconds()
	for k := range x.after {
		p := &x.after[k]
		if taken := !slices.ContainsFunc(x.pieces, func(old driver.Piece) bool { return old.Mark == p.Mark }); taken {
			p.Until = at + length
		}
	}
}
