//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"strconv"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/bucket"
	"github.com/weir-limiter/weir/internal/takes"
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

// stepOf numbers what a settlement does, so that the same one has the same number everywhere.
func stepOf(st *weir.Settlement, now int64) int64 {
	switch st.Verb {
	case weir.VerbAdjust:
		return stepAdjust + 2*(st.Seq%(1<<44))
	case weir.VerbExtend:
		return stepExtend + 2*now
	}
	return stepEnd
}

// Settle makes a lease stand for something else by one linked chain in one call: all of it or
// nothing. It is refused, with [weir.Invalid] and before anything is applied, where a count would
// no longer fit or slots would grow. The chain renews the lease's token, so that of two servers
// that settle at once one is second: it reads the lease again first.
func (s *Store) Settle(ctx context.Context, _ time.Time, st *weir.Settlement) (*weir.Outcome, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.options.ReadOnly {
		return nil, readOnly()
	}
	c := &settling{s: s, st: st}
	if err := c.begin(st.Holdings); err != nil {
		return nil, err
	}
	if ctx.Done() == nil {
		return c.run(ctx)
	}
	type answer struct {
		out *weir.Outcome
		err error
	}
	done := make(chan answer, 1) // nobody may be waiting
	go func() {
		out, err := c.run(ctx)
		done <- answer{out, err}
	}()
	select {
	case a := <-done:
		return a.out, a.err
	case <-ctx.Done(): // what the chain does is taken in when its results come
		return nil, unavailable(ctx.Err())
	}
}

// run sends chains until one has an answer. The outcome is nil if there is nothing to withdraw.
func (c *settling) run(ctx context.Context) (*weir.Outcome, error) {
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

// settling is one Settle.
type settling struct {
	s       *Store
	st      *weir.Settlement
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

// change is what a settlement does to one holding.
type change struct {
	seat
	holding  *weir.Holding
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

// begin finds out what is asked of each holding.
func (c *settling) begin(holdings []weir.Holding) error {
	st := c.st
	if st.Verb != weir.VerbExtend && len(st.Totals) != len(holdings) {
		return &weir.Error{
			Code: weir.Invalid, Field: "totals", Value: strconv.Itoa(len(st.Totals)),
			Reason: "must be one for each of " + strconv.Itoa(len(holdings)) + " holdings",
		}
	}
	now := c.s.clock.ms()
	c.changes = make([]change, len(holdings))
	for i := range holdings {
		if err := c.read(now, &holdings[i], i); err != nil {
			return err
		}
	}
	return nil
}

// try sends a chain, where nobody is known to have been quicker. It returns nothing where it is to
// be tried again.
func (c *settling) try(ctx context.Context) (*weir.Outcome, error) {
	if c.st.Verb == weir.VerbAdjust && c.st.Seq <= c.seq {
		return c.reload(ctx)
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
func (c *settling) lives() bool {
	return c.st.Verb == weir.VerbAdjust || c.st.Verb == weir.VerbExtend
}

func (c *settling) read(now int64, h *weir.Holding, i int) error {
	st, x := c.st, &c.changes[i]
	limit := h.Limit
	if i < len(st.Limits) && st.Limits[i] != nil {
		limit = st.Limits[i]
	}
	take := h.Take
	take.Limit = limit
	*x = change{
		seat: seat{
			spot: c.s.spots.find(now, &c.s.namespace, limitKey{h.Subject, limit.Name, limit.Kind}),
			take: &take,
		},
		holding: h, pieces: h.Pieces, from: h.Cost(), parts: h.Parts,
	}
	if i == 0 && len(h.Pieces) > 0 {
		c.token, c.seq, x.pieces = h.Pieces[0].Mark, h.Pieces[0].Units, h.Pieces[1:]
		if c.token&1 == stepExtend&1 {
			c.extended = max(c.extended, c.token)
		}
	}
	x.to = x.from
	if st.Verb == weir.VerbExtend {
		x.spared = limit.Kind != weir.Concurrency
		return nil
	}
	slots := limit.Kind == weir.Concurrency
	if slots && !c.lives() {
		x.to = 0
		return nil
	}
	var ok bool
	if x.to, ok = takes.Sum(st.Totals[i]); !ok {
		return c.unfit(i, "is more than can be counted")
	}
	if slots && x.to > x.from {
		return c.unfit(i, "the lease stands for only "+strconv.FormatInt(x.from, 10))
	}
	x.parts = st.Totals[i]
	return nil
}

func (c *settling) unfit(i int, reason string) error {
	t := weir.Take{Parts: c.st.Totals[i]}
	return &weir.Error{
		Code: weir.Invalid, Field: "totals." + c.changes[i].holding.Limit.Name,
		Value: strconv.FormatInt(t.Cost(), 10), Reason: reason,
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
	if v.event.role == roleHeader && exists(v.status) && c.st.Verb != weir.VerbExtend {
		return c.replay(ctx)
	}
	switch v.status {
	case tb.TransferPendingTransferAlreadyVoided, tb.TransferPendingTransferAlreadyPosted:
		return c.reload(ctx)
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
		return c.reload(ctx)
	}
	return nil, unexpected("create_transfers", v.status.String())
}

// chain builds the call.
func (c *settling) chain(now int64) (*chain, error) {
	st := c.st
	step := stepOf(st, now)
	if st.Verb == weir.VerbExtend {
		// Another extend may have had this millisecond, under other definitions.
		step = max(step, c.extended+2)
	}
	ch := c.s.newChain(st.ID, step|c.again<<againBits, 2+2*len(c.changes))
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
	st := c.st
	token := transferID(st.ID, c.token, 0)
	if !c.lives() {
		flag := uint16(flagPost)
		if st.Verb == weir.VerbCancel {
			flag = flagVoid
		}
		ch.put(&tb.Transfer{
			ID: transferID(st.ID, stepEnd, 0), PendingID: token, Flags: flag, UserData128: ch.number,
			UserData64: st.Fingerprint, UserData32: endMark,
		}, roleHeader, 0)
		return
	}
	h := head{code: codeAdjusted, fingerprint: uint64(ch.step), amount: uint64(st.Seq)}
	if st.Verb == weir.VerbExtend {
		c.expires = st.Expires(time.UnixMilli(now))
		h.code, h.amount = codeExtended, uint64(c.expires.UnixMilli())
	}
	ch.header(transferID(st.ID, ch.step&stepMask, 0), h)
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
		if c.st.Verb == weir.VerbExtend {
			x.extend(ch, now, i)
		} else {
			x.changeHolds(ch, now, i)
		}
	}
	if c.st.Verb == weir.VerbAdjust && !x.stays {
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
		milli, ok := bucket.Milli(x.from - x.to)
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
