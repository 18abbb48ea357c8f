//go:build cgo

package tigerbeetle

import (
	"context"

	"github.com/weir-limiter/weir"
)

// leewayMS is for how long calls go without moving a bucket's anchor while another one of the
// process is on its way with it, in milliseconds (docs/adr/0020-tigerbeetle-ledger.md).
const leewayMS = 100

// board decides which buckets' anchors a call moves, and waits where another call is about to move
// one that is too old. It returns the instant that the chain is made for. Every call that boards
// must land.
func (s *Store) board(ctx context.Context, seats []*seat) (int64, error) {
	version := s.versionMine()
	for {
		now := s.clock.ms()
		var wait <-chan struct{}
		for i := 0; i < len(seats) && wait == nil; i++ {
			seats[i].version = version
			wait = seats[i].claim(now)
		}
		if wait == nil {
			return now, nil
		}
		s.land(seats)
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, unavailable(ctx.Err())
		}
	}
}

// claim takes the turn to move the bucket's anchor, if it is to be moved, or returns what to wait
// for.
func (s *seat) claim(now int64) <-chan struct{} {
	if s.key.kind != weir.Bucket || s.spared {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := &s.bucket
	r := known.anchor.rate
	if s.key.Entity != "" {
		r = rateOf(s.take.Limit) // of a limit without a name, nobody knows more than the anchor
	}
	if s.refunds && known.anchor.rate == r {
		return nil // less is spent, whenever that is counted
	}
	if known.flying {
		// Not before the first anchor, nor beside a change of the definition: the call's chain might
		// be carried out first, and then it would take from a bucket that was never begun, or of
		// another capacity.
		same := known.next.rate == r && known.anchor.rate == r
		if same && known.next.b >= now-leewayMS && known.near() {
			return nil
		}
		return known.landed
	}
	move, moves := known.follow(now, r, s.version)
	if !moves {
		return nil
	}
	s.move, s.carries = move, true
	s.anew = known.anchor.b > 0 && move.rate != known.anchor.rate && known.forgotten(now, s.touched)
	known.flying, known.next, known.landed = true, move, make(chan struct{})
	return nil
}

// arrive takes in that the anchor was moved. The spot is locked.
func (s *seat) arrive() { s.bucket.move(s.move, s.anew) }

// near is true where the move that is on its way reaches back no further than steady traffic has
// it. It may fail with its chain: what was taken without it then comes back with the next one, as
// far as that reaches back. So nobody goes without a longer one.
func (k *bucketKnown) near() bool {
	return k.next.b-k.anchor.b <= leewayMS+k.trip
}

// land ends the call's turn on every anchor that it was to move, whether or not it did.
func (s *Store) land(seats []*seat) {
	now := s.clock.ms()
	for _, seat := range seats {
		if !seat.carries {
			continue
		}
		seat.mu.Lock()
		seat.carries = false
		seat.bucket.flying = false
		if seat.bucket.anchor == seat.bucket.next {
			seat.bucket.trip = max(now-seat.bucket.next.b, 0)
		}
		close(seat.bucket.landed)
		seat.mu.Unlock()
	}
}

// redefine moves the anchors of a denied call's buckets whose definition has changed: a capacity
// that was lowered trims also who is denied. One that is forgotten stays so: there is nothing to
// trim.
func (s *Store) redefine(ctx context.Context, lease weir.LeaseID, seats []*seat) error {
	for _, seat := range seats {
		seat.mu.Lock()
		was := seat.bucket.anchor
		if !seat.carries || was.b == 0 || was.rate == seat.move.rate || seat.anew {
			seat.mu.Unlock()
			continue
		}
		ch := s.newChain(lease, 0, 2)
		seat.refill(ch, 0)
		seat.mu.Unlock()
		ch.close()
		results, err := s.transfer(ctx, ch)
		if err != nil {
			return err
		}
		v := ch.judge(results)
		s.recycle(ch)
		if v.created {
			seat.mu.Lock()
			seat.arrive()
			if seat.seen != nil { // the wait goes by the new definition
				seat.seen.bucket.move(seat.move, seat.anew)
			}
			seat.mu.Unlock()
		} else if err := s.readSpot(ctx, seat.spot); err != nil {
			return err
		}
	}
	return nil
}
