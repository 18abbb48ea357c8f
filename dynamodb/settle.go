package dynamodb

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/bucket"
)

// Settle makes a lease stand for something else. What is more is charged and what is less given
// back with the next write of each bucket item. If the table does not answer, the store knows
// which part was done: the same settlement again, or another of the same lease, does only the
// rest. An amount that may have been given back is not given back again; the outcome says that
// its refund is in doubt, and it is counted in [Stats].
func (s *Store) Settle(
	ctx context.Context, now time.Time, st *weir.Settlement,
) (*weir.Outcome, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.running.end()
	out := st.Outcome(wholeMS(now))
	if st.Verb == weir.VerbExtend {
		if t := s.unsettled.take(st.ID); t != nil {
			s.unsettled.keep(now, st, t)
		}
		out.Holdings = st.Holdings
		return out, nil
	}
	t := s.unsettled.take(st.ID)
	if t == nil {
		t = newSettlement(st.Holdings)
	}
	if err := t.wait(ctx); err != nil && ctx.Err() != nil { // the one before is still on its way
		s.unsettled.keep(now, st, t)
		return nil, err
	}
	if err := t.send(s, now, st); err != nil {
		s.unsettled.keep(now, st, t)
		return nil, err
	}
	if err := t.wait(ctx); err != nil {
		s.unsettled.keep(now, st, t)
		return nil, err
	}
	out.RefundInDoubt = t.inDoubt()
	t.noteUnmoved(s, now, st)
	if st.Verb == weir.VerbAdjust {
		out.Holdings = make([]weir.Holding, len(st.Holdings))
		for i := range st.Holdings {
			h := st.Holdings[i]
			h.Limit = st.Limits[i]
			h.Parts = slices.Clone(st.Totals[i])
			h.Pieces = make([]weir.Piece, len(t.pieces[i]))
			for k, p := range t.pieces[i] {
				h.Pieces[k] = p.kept()
			}
			out.Holdings[i] = h
		}
	}
	return out, nil
}

// settlement is what a lease stands for on the table while it is settled.
type settlement struct {
	mu     sync.Mutex
	pieces [][]piece     // of each holding
	open   int           // rides that are on their way
	err    error         // the first that failed
	done   chan struct{} // closed when none is on its way
	moved  []bool        // for each holding, whether something was sent for it
	doubt  bool          // a refund may not have been made
}

func newSettlement(holdings []weir.Holding) *settlement {
	t := &settlement{pieces: make([][]piece, len(holdings)), done: make(chan struct{})}
	close(t.done)
	for i := range holdings {
		if len(holdings[i].Pieces) == 0 {
			t.pieces[i] = []piece{{milli: holdings[i].Cost() * 1000}}
			continue
		}
		for _, p := range holdings[i].Pieces {
			t.pieces[i] = append(t.pieces[i], pieceOf(p))
		}
	}
	return t
}

// wait waits until nothing is on its way, and returns what went wrong, once.
func (t *settlement) wait(ctx context.Context) error {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return late(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.err
	t.err = nil
	return err
}

// inDoubt reports whether a refund may not have been made, in this settlement or one before it
// that did not get through.
func (t *settlement) inDoubt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.doubt
}

// step is a change of one piece.
type step struct {
	holding, piece int
	milli          int64
	shard          int
}

// send puts everything on its way that is not yet as it shall be, or nothing: one ride of charges
// and one of refunds for each item, since after a write without an answer they go different ways.
func (t *settlement) send(s *Store, now time.Time, st *weir.Settlement) error {
	steps, err := t.steps(st)
	if err != nil {
		return err
	}
	t.moved = make([]bool, len(st.Holdings))
	type place struct {
		of     weir.Subject
		shard  int
		refund bool
	}
	rides := make(map[place]*ride)
	moved := make(map[place][]step)
	var order []place
	for _, p := range steps {
		h := &st.Holdings[p.holding]
		t.moved[p.holding] = true
		at := place{h.Subject, p.shard, p.milli < 0}
		r := rides[at]
		if r == nil {
			r = &ride{now: now.UnixMilli()}
			rides[at] = r
			order = append(order, at)
		}
		r.changes = append(r.changes, change{
			name: h.Limit.Name, milli: p.milli, limit: st.Limits[p.holding],
		})
		moved[at] = append(moved[at], p)
	}
	if len(order) == 0 {
		return nil
	}
	lines := make([]*line, len(order))
	for i, at := range order {
		p := s.spots.get(s, at.of)
		defer p.release()
		lines[i] = p.line(at.shard)
		if m := lines[i].expected(); m != nil { // all or nothing, as far as the items are known
			if err := m.countable(rides[at], make(map[string]int64)); err != nil {
				return err
			}
		}
	}
	t.mu.Lock()
	t.open, t.done = len(order), make(chan struct{})
	t.mu.Unlock()
	for i, at := range order {
		r := rides[at]
		r.done = func(err error) { t.finish(moved[at], r.inDoubt, err) }
		r.reread = s.unread(at.of)
		lines[i].submit(nil, r)
	}
	return nil
}

// noteUnmoved notes that limits were settled on which nothing moved: they have been seen.
func (t *settlement) noteUnmoved(s *Store, now time.Time, st *weir.Settlement) {
	for i := range st.Holdings {
		h := &st.Holdings[i]
		if t.moved[i] {
			continue
		}
		p := s.spots.get(s, h.Subject)
		var inForce *weir.Limit
		if s.unread(h.Subject) {
			inForce = st.Limits[i]
		}
		seen := sighting{name: h.Limit.Name, now: now.UnixMilli(), limit: inForce}
		p.line(t.pieces[i][0].shard).note(seen)
		p.release()
	}
}

// finish notes what became of a ride.
func (t *settlement) finish(steps []step, inDoubt bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubt = t.doubt || inDoubt
	if err == nil {
		for _, p := range steps {
			t.pieces[p.holding][p.piece].milli += p.milli
		}
	} else if t.err == nil {
		t.err = err
	}
	if t.open--; t.open == 0 {
		close(t.done)
	}
}

// steps are what is to be done. More is charged where the units are; less is taken off what was
// added last.
func (t *settlement) steps(st *weir.Settlement) ([]step, error) {
	var steps []step
	for i := range st.Holdings {
		total := (&weir.Take{Parts: st.Totals[i]}).Cost()
		left, ok := bucket.Milli(total)
		if !ok {
			return nil, fault(weir.Invalid, "totals."+st.Holdings[i].Limit.Name,
				strconv.FormatInt(total, 10), "is more than can be counted")
		}
		for _, p := range t.pieces[i] {
			left -= p.milli
		}
		if left > 0 {
			steps = append(steps, step{i, 0, left, t.pieces[i][0].shard})
		}
		for k := len(t.pieces[i]) - 1; left < 0 && k >= 0; k-- {
			p := &t.pieces[i][k]
			if n := min(p.milli, -left); n > 0 {
				steps = append(steps, step{i, k, -n, p.shard})
				left += n
			}
		}
	}
	return steps, nil
}

// unsettled keeps the settlements that did not get through, by lease, until the lease has ended by
// itself: then nobody asks for it any more.
type unsettled struct {
	mu    sync.Mutex
	of    map[weir.LeaseID]kept
	sweep int // how many there are when the ended ones are dropped next
}

type kept struct {
	*settlement
	until int64 // Unix ms
}

// leastSweep is below how many the ended ones are not worth looking for.
const leastSweep = 1000

func (u *unsettled) take(id weir.LeaseID) *settlement {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.of[id].settlement
	delete(u.of, id)
	return t
}

func (u *unsettled) keep(now time.Time, st *weir.Settlement, t *settlement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of, u.sweep = make(map[weir.LeaseID]kept), leastSweep
	}
	if len(u.of) >= u.sweep {
		maps.DeleteFunc(u.of, func(_ weir.LeaseID, k kept) bool { return k.until < now.UnixMilli() })
		u.sweep = max(leastSweep, 2*len(u.of))
	}
	u.of[st.ID] = kept{t, st.Expires(now).UnixMilli()}
}
