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
	"github.com/weir-limiter/weir/kernel"
)

// The steps of a lease. Those of a reservation are its attempts, below stepAdjust.
const (
	stepAdjust = 1 << attemptBits // even, and twice the sequence number
	stepExtend = stepAdjust + 1   // odd, and twice the millisecond
	stepEnd    = 1 << 46
	// A chain that is sent anew with other IDs has its number above the step.
	againBits = 47
	stepMask  = 1<<againBits - 1
)

// stepOf numbers what an update does, so that the same one has the same number everywhere.
func stepOf(u *weir.Update, now int64) int64 {
	switch u.Verb {
	case weir.VerbAdjust:
		return stepAdjust + 2*(u.Seq%(1<<44))
	case weir.VerbExtend:
		return stepExtend + 2*now
	}
	return stepEnd
}

// Update makes a lease stand for something else by one linked chain in one call: all of it or
// nothing. It is refused, with [weir.Invalid] and before anything is applied, if a count would
// no longer fit. The chain renews the lease's token, so that of two servers that change it at once one is
// second: its update is stale.
func (s *Store) Update(ctx context.Context, _ time.Time, u *weir.Update, out *weir.Outcome) error {
	if err := s.enter(false); err != nil {
		return err
	}
	defer s.leave()
	if s.options.ReadOnly {
		return readOnly()
	}
	c := newSettling(s, u)
	if ctx.Done() == nil {
		found, err := c.run(ctx)
		return c.answer(out, found, err)
	}
	type answer struct {
		out *weir.Outcome
		err error
	}
	done := make(chan answer, 1) // nobody may be waiting
	go func() {
		found, err := c.run(ctx)
		done <- answer{found, err}
	}()
	select {
	case a := <-done:
		return c.answer(out, a.out, a.err)
	case <-ctx.Done(): // what the chain does is taken in when its results come
		return unavailable(ctx.Err())
	}
}

// answer fills in the caller's outcome.
func (c *settling) answer(out, found *weir.Outcome, err error) error {
	if err == nil {
		*out = *found
	}
	return err
}

// run sends chains until one has an answer. The outcome is nil if there is nothing to withdraw.
func (c *settling) run(ctx context.Context) (*weir.Outcome, error) {
	if len(c.changes) == 0 && !c.withdraws { // no holding tells what the lease's token is
		h, err := c.s.recover(ctx, c.u.ID)
		if err != nil || h == nil {
			return nil, cmp.Or(err, unknown(c.u.ID))
		}
		if h.record.State != weir.LeaseLive {
			return nil, &weir.StaleError{Lease: &h.record}
		}
		c.token, c.seq, c.extended = h.token(), h.record.Seq, h.extended
	}
	for i := range tries {
		if i > 0 {
			c.s.counts.again.Add(1)
		}
		out, err := c.try(ctx)
		if err != nil || out != nil || c.taken {
			return out, err
		}
	}
	return nil, &weir.Error{Code: weir.Unavailable, Reason: "other servers were quicker each time"}
}

// settling is one Update.
type settling struct {
	s *Store
	// u is a copy, without its changes: a chain that the cluster has may outlive the call.
	u       weir.Update
	changes []change
	// token is the step of the lease's token, seq the number of the last adjust that the holdings
	// are of.
	token, seq int64
	// extended is the highest step of an extend of the lease, as far as it is known here.
	extended int64
	// expires is when an extend lets the lease end.
	expires time.Time
	// again numbers the chains that were sent.
	again int64
	// withdraws is true for a lease that nobody has been told of: it is given back as it was
	// reserved, or not at all. taken is true once somebody else is known to have it, or to have
	// ended it.
	withdraws, taken bool
}

// change is what an update does to one holding.
type change struct {
	seat
	holding  weir.Holding
	pieces   []weir.Piece
	from, to int64
	parts    []weir.Part
	// stays is true where a shadow limit cannot count more, so that the parts are as before.
	stays bool
	// over are the pieces that have ended on the cluster.
	over map[int64]bool

	// What the chain makes of the pieces.
	left    []weir.Piece
	undo    []weir.Piece
	gained  weir.Piece
	changed bool
}

func newSettling(s *Store, u *weir.Update) *settling {
	c := &settling{s: s, u: *u, changes: make([]change, len(u.Changes))}
	c.u.Changes = nil
	now := s.clock.ms()
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
		x.spared = u.Verb == weir.VerbExtend && x.key.kind != weir.Concurrency
	}
	return c
}

// begin copies what is asked of one holding.
func (x *change) begin(s *Store, now int64, of *weir.Change) {
	x.holding = *of.Holding
	x.holding.Parts = slices.Clone(x.holding.Parts)
	take := x.holding.Take
	take.Limit = of.Limit
	x.seat = seat{
		spot: s.spots.find(now, &s.namespace, limitKey{take.Subject, of.Limit.Name, of.Limit.Kind}), take: &take,
	}
	x.pieces, x.parts = slices.Clone(x.holding.Pieces), slices.Clone(of.Parts)
	x.from, x.to = of.From, of.To
}

// try sends a chain, where nobody is known to have been quicker. It returns nothing where it is to
// be tried again.
func (c *settling) try(ctx context.Context) (*weir.Outcome, error) {
	if c.u.Verb == weir.VerbAdjust && c.u.Seq <= c.seq {
		return nil, c.stale(ctx)
	}
	if err := c.know(ctx); err != nil {
		return nil, err
	}
	return c.send(ctx)
}

// know asks the cluster about buckets that this process has not used, where more is taken of them.
func (c *settling) know(ctx context.Context) error {
	var unknown []*spot
	for i := range c.changes {
		x := &c.changes[i]
		x.refunds = x.to <= x.from
		x.mu.Lock()
		ready := x.ready || x.key.kind != weir.Bucket
		x.mu.Unlock()
		if !ready {
			unknown = append(unknown, x.spot)
		}
	}
	return c.s.readSpots(ctx, unknown)
}

// lives is true where the lease goes on.
func (c *settling) lives() bool { return !c.u.Ends() }

func (c *settling) unfit(i int, reason string) error {
	x := &c.changes[i]
	return &weir.Error{
		Code: weir.Invalid, Field: "totals." + x.holding.Limit.Name,
		Value: strconv.FormatInt(x.to, 10), Reason: reason,
	}
}

// send sends one chain. It returns nothing where the chain is to be sent anew.
func (c *settling) send(ctx context.Context) (*weir.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err) // nobody waits for it
	}
	all := make([]*seat, 0, len(c.changes))
	for i := range c.changes {
		all = append(all, &c.changes[i].seat)
	}
	now, err := c.s.board(ctx, all)
	if err != nil {
		return nil, err
	}
	defer c.s.land(all)
	ch, err := c.chain(now)
	if err != nil {
		return nil, err
	}
	if err := c.s.fits(ch); err != nil {
		return nil, err
	}
	if err := c.settles(now); err != nil {
		return nil, err
	}
	for i := range c.changes {
		x := &c.changes[i]
		x.adds, x.lets = max(x.to-x.from, 0), max(x.from-x.to, 0)
	}
	fly(all, 1, true)
	results, err := c.s.transfer(context.WithoutCancel(ctx), ch)
	v := ch.judge(results)
	if err == nil && v.created {
		c.book(now)
	}
	fly(all, -1, true)
	if err != nil {
		lost(all)
		return nil, err
	}
	step := ch.step & stepMask
	c.s.recycle(ch)
	if !v.created {
		return c.refused(ctx, v)
	}
	return c.outcome(v.at, step), nil
}

// refused finds out why a chain failed, and puts it right.
func (c *settling) refused(ctx context.Context, v verdict) (*weir.Outcome, error) {
	if v.event.role == roleHeader && exists(v.status) {
		return nil, c.stale(ctx)
	}
	switch v.status {
	case tb.TransferPendingTransferAlreadyVoided, tb.TransferPendingTransferAlreadyPosted:
		return nil, c.stale(ctx)
	}
	if len(c.changes) == 0 { // the chain has a header and the end of the token alone
		return nil, unexpected("create_transfers", v.status.String())
	}
	x := &c.changes[v.event.holding]
	switch {
	case v.event.role == roleRefill && exists(v.status):
		return nil, c.s.readSpot(ctx, x.spot)
	case v.status == tb.TransferPendingTransferExpired && v.event.role == roleBack:
		if x.over == nil {
			x.over = make(map[int64]bool)
		}
		x.over[v.event.mark] = true
		return nil, nil // It is to be sent anew.
	case v.status == tb.TransferIDAlreadyFailed:
		c.again++
		return nil, nil // It is to be sent anew.
	case v.status == tb.TransferExceedsCredits:
		c.again++
		if x.take.Limit.Shadow {
			x.to, x.stays, x.parts = x.from, true, x.holding.Parts
			return nil, nil // It is to be sent anew.
		}
		return nil, c.unfit(v.event.holding, "is more than can be counted")
	case exists(v.status):
		return nil, c.stale(ctx)
	}
	return nil, unexpected("create_transfers", v.status.String())
}

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
