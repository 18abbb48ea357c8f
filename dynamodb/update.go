package dynamodb

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/leaserecord"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/kernel"
)

// Update changes what a lease stands for. The difference is charged or refunded with the next write
// of each bucket item. If the lease is in the table, the charges come first, then the slot of its
// record, then the refunds: so a record never stands for more than the buckets, and of several
// processes only the one that has written the slot refunds. A process that finds another version in
// the slot gives back its charges, and returns a [*driver.StaleError].
//
// If the table does not answer, the store remembers which parts were written: a repeated update, or
// another update of the same lease, writes only the rest. A refund that may have been made is not
// made again; the outcome then says that the refund is in doubt, and [Stats] counts it.
func (s *Store) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	out.At = now.Truncate(time.Millisecond)
	if u.Unplanned && s.compensateUnplanned(u.ID) {
		return nil
	}
	if err := s.running.Enter(); err != nil {
		return err
	}
	defer s.running.End()
	if u.Verb == weir.VerbExtend && s.leases == nil {
		s.extendInProcess(now, u, out)
		return nil
	}
	t := s.unfinished.remove(u.ID)
	if t == nil {
		t = newLeaseUpdate(u)
	}
	if err := s.apply(ctx, now, u, t); err != nil {
		if stale, ok := errors.AsType[*driver.StaleError](err); ok {
			stale.RefundInDoubt = t.inDoubt()
		} else if t.lost == nil {
			s.unfinished.put(now, u.ID, u.Expires(now), t)
		}
		return err
	}
	out.RefundInDoubt = t.inDoubt()
	if t.slot != nil {
		out.Version = t.slot.Version
	}
	if u.Verb != weir.VerbExtend {
		t.noteSeen(s, now, u)
	}
	for i := range u.Changes {
		out.Taken[i].Pieces = toSeam(t.pieces[i])
	}
	return nil
}

// extendInProcess extends a lease that is not in the table, which writes nothing. The next update
// of the lease still needs to know what one that failed has written, until the lease expires.
func (s *Store) extendInProcess(now time.Time, u *driver.Update, out *driver.Outcome) {
	if t := s.unfinished.remove(u.ID); t != nil {
		out.RefundInDoubt = t.inDoubt()
		s.unfinished.put(now, u.ID, u.Expires(now), t)
	}
	for i := range u.Changes {
		out.Taken[i].Pieces = u.Changes[i].Holding.Pieces
	}
}

// apply makes the writes of an update and waits for them. After an error, t knows which were made.
func (s *Store) apply(ctx context.Context, now time.Time, u *driver.Update, t *leaseUpdate) error {
	if err := t.wait(ctx); err != nil && ctx.Err() != nil { // an earlier update is still in flight
		return err
	}
	if s.leases != nil && !u.Unplanned {
		return s.applyRecorded(ctx, now, u, t)
	}
	deltas, err := t.pieceDeltas(u)
	if err != nil {
		return err
	}
	if err := t.enqueue(s, now, u, deltas); err != nil {
		return err
	}
	return t.wait(ctx)
}

// leaseUpdate holds the units of a lease on the table while it is updated. It outlives an update
// that fails, so that the next one knows which parts were written. mu guards the fields while item
// updates are in flight. While none is, only the call of the engine uses them, and the engine makes
// one call for a lease at a time.
type leaseUpdate struct {
	mu        sync.Mutex
	base      [][]shardPiece // of each holding before the update
	version   uint64         // of the lease's slot before the update; 0 if it is not in the table
	pieces    [][]shardPiece // of each holding
	inFlight  int            // the number of item updates in flight
	err       error          // the first error of an item update
	done      chan struct{}  // closed when none is in flight
	touched   []bool         // for each holding, whether a delta was sent
	uncertain bool           // a refund is in doubt
	// slot is what this process has written into the lease's slot by an update that the limiter does
	// not know of; nil if there is none.
	slot *schema.Lease
	// unknown is the last write of the slot if it had no answer, so that it may have been made; nil
	// otherwise. recorded is the update that it records, and owed are its refunds.
	unknown  *leaserecord.Write
	recorded *driver.Update
	owed     []pieceDelta
	// lost is the answer to an update that found another version in the slot; nil if there is none.
	lost error
}

func newLeaseUpdate(u *driver.Update) *leaseUpdate {
	t := &leaseUpdate{done: make(chan struct{})}
	close(t.done)
	t.restart(u)
	return t
}

// restart makes t the beginning of an update. No write of t is in flight.
func (t *leaseUpdate) restart(u *driver.Update) {
	t.base, t.pieces, t.slot = piecesOf(u.Changes), piecesOf(u.Changes), nil
	t.touched = make([]bool, len(u.Changes))
	if u.Lease != nil {
		t.version = u.Lease.Version
	}
}

// piecesOf returns the units of each holding before the changes.
func piecesOf(changes []driver.Change) [][]shardPiece {
	pieces := make([][]shardPiece, len(changes))
	for i := range changes {
		if len(changes[i].Holding.Pieces) == 0 {
			pieces[i] = []shardPiece{{milli: changes[i].From * 1000}}
			continue
		}
		for _, p := range changes[i].Holding.Pieces {
			pieces[i] = append(pieces[i], shardPieceOf(p))
		}
	}
	return pieces
}

// wait waits until no item update is in flight. It returns their first error, once.
func (t *leaseUpdate) wait(ctx context.Context) error {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return client.AbandonedError(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.err
	t.err = nil
	return err
}

// inDoubt reports whether a refund of this update, or of an earlier one that failed, may not have
// been made.
func (t *leaseUpdate) inDoubt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uncertain
}

// pieceDelta is a change of one piece of a holding.
type pieceDelta struct {
	holding, piece int
	milli          int64
	shard          int
}

// itemDeltas are the charges or the refunds on one item.
type itemDeltas struct {
	of     weir.Subject
	shard  int
	update *bucketitem.Update
	queue  *bucketitem.Queue
	pieces []pieceDelta
}

// byItem groups deltas by item. Charges and refunds are separate item updates, because a lost
// answer means different things for them: a charge is made again, a refund is not (ADR 18).
func (t *leaseUpdate) byItem(now int64, u *driver.Update, deltas []pieceDelta) []*itemDeltas {
	type place struct {
		of     weir.Subject
		shard  int
		refund bool
	}
	known := make(map[place]*itemDeltas)
	var all []*itemDeltas
	for _, d := range deltas {
		h := u.Changes[d.holding].Holding
		t.touched[d.holding] = true
		at := place{h.Subject, d.shard, d.milli < 0}
		g := known[at]
		if g == nil {
			g = &itemDeltas{of: at.of, shard: at.shard, update: &bucketitem.Update{Now: now}}
			known[at] = g
			all = append(all, g)
		}
		inForce := definitionOf(u.Changes[d.holding].Limit)
		g.update.Deltas = append(g.update.Deltas, bucketitem.Delta{
			Name: h.Limit.Name, Milli: d.milli, Limit: inForce,
			Changed: inForce != nil && definitionOf(h.Limit) != nil && !inForce.Same(*h.Limit),
		})
		g.pieces = append(g.pieces, d)
	}
	return all
}

// definitionOf returns a definition; nil if only the name is known, because the lease was read from
// its record.
func definitionOf(l *weir.Limit) *weir.Limit {
	if l.Capacity == 0 {
		return nil
	}
	return l
}

// enqueue enqueues deltas. It enqueues nothing if one of them would overflow a balance.
func (t *leaseUpdate) enqueue(
	s *Store, now time.Time, u *driver.Update, deltas []pieceDelta,
) error {
	return t.enqueueUntil(s, now, u, deltas, t.finish)
}

// enqueueUntil is like enqueue. It calls finish when the deltas of an item are written.
func (t *leaseUpdate) enqueueUntil(
	s *Store, now time.Time, u *driver.Update, deltas []pieceDelta,
	finish func(d *itemDeltas, err error),
) error {
	items := t.byItem(now.UnixMilli(), u, deltas)
	if len(items) == 0 {
		return nil
	}
	queues := make([]*bucketitem.Queue, len(items))
	for i, d := range items {
		p := s.buckets.Subject(d.of)
		defer p.Release()
		queues[i] = p.Queue(d.shard)
		if m := queues[i].ExpectedImage(); m != nil { // an unknown item fails later, by itself
			if err := m.Countable(d.update, make(map[string]int64)); err != nil {
				return err
			}
		}
	}
	t.begin(len(items))
	for i, d := range items {
		d.queue = queues[i]
		d.update.Done = func(err error) { finish(d, err) }
		d.update.Reread = s.buckets.ConfigStale(d.of)
		queues[i].Enqueue(d.update)
	}
	return nil
}

// begin notes that writes are in flight.
func (t *leaseUpdate) begin(writes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inFlight == 0 {
		t.done = make(chan struct{})
	}
	t.inFlight += writes
}

// noteSeen notes the limits that were settled without a change, and so without a write.
func (t *leaseUpdate) noteSeen(s *Store, now time.Time, u *driver.Update) {
	for i := range u.Changes {
		h := u.Changes[i].Holding
		if t.touched[i] {
			continue
		}
		p := s.buckets.Subject(h.Subject)
		var inForce *weir.Limit
		if s.buckets.ConfigStale(h.Subject) {
			inForce = definitionOf(u.Changes[i].Limit)
		}
		seen := bucketitem.SeenLimit{Name: h.Limit.Name, Now: now.UnixMilli(), Limit: inForce}
		p.Queue(t.pieces[i][0].shard).NoteSeen(seen)
		p.Release()
	}
}

// finish records the result of one item update.
func (t *leaseUpdate) finish(d *itemDeltas, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncertain = t.uncertain || d.update.InDoubt
	if err == nil {
		for _, p := range d.pieces {
			t.pieces[p.holding][p.piece].milli += p.milli
		}
	} else if t.err == nil {
		t.err = err
	}
	t.ended()
}

// ended notes that a write is not in flight any more. The caller holds the lock.
func (t *leaseUpdate) ended() {
	if t.inFlight--; t.inFlight == 0 {
		close(t.done)
	}
}

// pieceDeltas returns the changes that are left to make. An additional charge goes to the first
// piece's shard; a refund comes from the last pieces first.
func (t *leaseUpdate) pieceDeltas(u *driver.Update) ([]pieceDelta, error) {
	var deltas []pieceDelta
	for i := range u.Changes {
		c := &u.Changes[i]
		left, ok := kernel.Milli(c.To)
		if !ok {
			return nil, client.Fault(weir.Invalid, "totals."+c.Limit.Name,
				strconv.FormatInt(c.To, 10), "is more than a limit can count")
		}
		for _, p := range t.pieces[i] {
			left -= p.milli
		}
		if left > 0 {
			deltas = append(deltas, pieceDelta{i, 0, left, t.pieces[i][0].shard})
		}
		for k := len(t.pieces[i]) - 1; left < 0 && k >= 0; k-- {
			p := &t.pieces[i][k]
			if n := min(p.milli, -left); n > 0 {
				deltas = append(deltas, pieceDelta{i, k, -n, p.shard})
				left += n
			}
		}
	}
	return deltas, nil
}

// charges returns the deltas that take units, and refunds those that return units.
func charges(deltas []pieceDelta) []pieceDelta {
	return slices.DeleteFunc(slices.Clone(deltas), func(d pieceDelta) bool { return d.milli < 0 })
}

func refunds(deltas []pieceDelta) []pieceDelta {
	return slices.DeleteFunc(slices.Clone(deltas), func(d pieceDelta) bool { return d.milli > 0 })
}

// shardPiece is the part of a holding on one shard. It counts milli-units, because a shard's share
// may end in a fraction of a unit. All pieces of a holding together are whole units.
type shardPiece struct {
	milli int64
	shard int
}

// pieceMark is the factor of the shard in a piece's mark; the remainder is the thousandths.
const pieceMark = 1000

// shardPieceOf decodes a piece of the limiter. Its mark holds the shard and the thousandths of a
// unit.
func shardPieceOf(p driver.Piece) shardPiece {
	return shardPiece{p.Units*1000 + p.Mark%pieceMark, int(p.Mark / pieceMark)}
}

// toSeam returns pieces as the limiter keeps them: none if the first shard has all units.
func toSeam(pieces []shardPiece) []driver.Piece {
	if len(pieces) == 1 && pieces[0].shard == 0 {
		return nil
	}
	out := make([]driver.Piece, len(pieces))
	for i, p := range pieces {
		out[i] = p.toSeam()
	}
	return out
}

// toSeam returns the piece as the limiter keeps it.
func (p shardPiece) toSeam() driver.Piece {
	return driver.Piece{Units: p.milli / 1000, Mark: int64(p.shard)*pieceMark + p.milli%1000}
}
