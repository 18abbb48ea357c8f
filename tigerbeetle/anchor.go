//go:build cgo

package tigerbeetle

import (
	"context"
	"encoding/binary"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

func rateOf(l *weir.Limit) kernel.Rate { return l.Definition().Rate() }

// anchor is the instant up to which a bucket has been refilled, and the rate at which it refills
// from then on.
type anchor struct {
	// b is the instant, in Unix milliseconds; k numbers the anchors of one millisecond, from 0 to
	// 63.
	b int64
	k uint8
	// version is the low 24 bits of the version of the definitions that rate is from.
	version uint32
	rate    kernel.Rate
}

// The widths in bits of an anchor's fields on its transfer. user_data_128 holds the capacity and
// the refill amount, in units, and the lowest 20 bits of the period. The next 20 bits of the period
// are above b in user_data_64, and the last two are between version and k in user_data_32.
const (
	timeBits   = 44
	amountBits = 54
	pieceBits  = 20
	countBits  = 6

	amountMask = 1<<amountBits - 1
	pieceMask  = 1<<pieceBits - 1
	countMask  = 1<<countBits - 1
	// versionMask selects the bits of a version that an anchor keeps.
	versionMask = 1<<24 - 1
)

// write stores the anchor in the user data of the transfer that makes it.
func (a *anchor) write(t *tb.Transfer) {
	capacity, amount := uint64(a.rate.CapacityMilli/1000), uint64(a.rate.RefillMilli/1000)
	period := uint64(a.rate.PeriodMS)
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], capacity|amount<<amountBits)
	binary.LittleEndian.PutUint64(b[8:], amount>>(64-amountBits)|period&pieceMask<<(2*amountBits-64))
	t.UserData128 = tb.BytesToUint128(b)
	t.UserData64 = uint64(a.b) | period>>pieceBits&pieceMask<<timeBits
	t.UserData32 = a.version&versionMask<<8 | uint32(period>>(2*pieceBits))<<countBits | uint32(a.k)
}

// readAnchor returns the anchor that a transfer made.
func readAnchor(t *tb.Transfer) anchor {
	lo, hi := t.UserData128.Uint64()
	return anchor{
		b: int64(t.UserData64 & (1<<timeBits - 1)), k: uint8(t.UserData32 & countMask),
		version: t.UserData32 >> 8,
		rate: kernel.Rate{
			CapacityMilli: int64(lo&amountMask) * 1000,
			RefillMilli:   int64((lo>>amountBits|hi<<(64-amountBits))&amountMask) * 1000,
			PeriodMS: int64(hi>>(2*amountBits-64)&pieceMask | t.UserData64>>timeBits<<pieceBits |
				uint64(t.UserData32>>countBits&3)<<(2*pieceBits)),
		},
	}
}

// nextAnchor returns the anchor that follows the known one at an instant and under a rate, or false
// if they are the same. It moves each millisecond, even if the bucket regains nothing: a chain that
// moves the anchor fails if another server has moved it, and that is how this server learns of a
// capacity that another one has changed.
func (k *bucketEstimate) nextAnchor(now int64, r kernel.Rate, version uint32) (anchor, bool) {
	a := k.anchor
	changed := a.rate != r && (a.b == 0 || !olderVersion(version, a.version))
	if now <= a.b {
		if !changed || a.k == countMask {
			return a, false
		}
		a.k++
	} else {
		a.b, a.k = now, 0
	}
	if changed {
		a.rate, a.version = r, version&versionMask
	}
	return a, true
}

// olderVersion reports whether a version precedes another one. Anchors keep 24 bits of a version,
// so the comparison wraps around.
func olderVersion(version, other uint32) bool {
	return (version-other)&versionMask > versionMask/2
}

// leewayMS bounds how old an anchor may be, in milliseconds, that calls use without moving it while
// another call of the process is moving it (docs/adr/0020-tigerbeetle-ledger.md).
const leewayMS = 100

// claimAnchors decides which buckets' anchors the call moves. If another call is moving an anchor
// that this call cannot use as it is, claimAnchors gives up what it has claimed, waits, and starts
// again: waiting with a claim could deadlock two calls. It returns the instant for which to build
// the chain. The caller releases the claims with releaseAnchors.
func (s *Store) claimAnchors(ctx context.Context, takes []*activeTake) (int64, error) {
	version := s.ownVersion()
	for {
		now := s.clock.nowMS()
		var wait <-chan struct{}
		for i := 0; i < len(takes) && wait == nil; i++ {
			takes[i].version = version
			wait = takes[i].claimAnchor(now)
		}
		if wait == nil {
			return now, nil
		}
		s.releaseAnchors(takes)
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, client.Unavailable(ctx.Err())
		}
	}
}

// claimAnchor claims the move of the bucket's anchor for this call if the anchor has to move. It
// returns a channel to wait for if another call has the claim and this call cannot go without.
func (s *activeTake) claimAnchor(now int64) <-chan struct{} {
	if s.key.kind != weir.Bucket || s.skipped {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := &s.bucket
	r := known.anchor.rate
	if s.key.Entity != "" {
		r = rateOf(s.Limit) // the definition of an unnamed limit is not known, only its anchor
	}
	if s.refundsOnly && known.anchor.rate == r {
		return nil // a refund commutes with refills: both lower what is spent
	}
	if known.moving {
		// Wait for the first anchor and for a change of the definition. If this call's chain were
		// carried out first, it would take from a bucket without an anchor, or with another
		// capacity.
		same := known.next.rate == r && known.anchor.rate == r
		if same && known.next.b >= now-leewayMS && known.moveRecent() {
			return nil
		}
		return known.moved
	}
	move, moves := known.nextAnchor(now, r, s.version)
	if !moves {
		return nil
	}
	s.fromAnchor, s.nextAnchor, s.movesAnchor = known.anchor, move, true
	s.fromForgotten = known.anchor.b > 0 && move.rate != known.anchor.rate && known.forgotten(now, s.touched)
	known.moving, known.next, known.moved = true, move, make(chan struct{})
	return nil
}

// anchorMoved updates the estimate after the anchor was moved. s.mu is held.
func (s *activeTake) anchorMoved() { s.bucket.move(s.nextAnchor, s.fromForgotten) }

// moveRecent reports whether the move in flight covers no more time than leewayMS and the duration
// of a move, as it does under steady traffic. If that move fails with its chain, the next one
// covers the same time and gives back what other calls have taken meanwhile. So calls wait for a
// longer move.
func (k *bucketEstimate) moveRecent() bool {
	return k.next.b-k.anchor.b <= leewayMS+k.moveMS
}

// releaseAnchors ends the call's claims, whether or not the anchors were moved, and wakes the calls
// that wait.
func (s *Store) releaseAnchors(takes []*activeTake) {
	now := s.clock.nowMS()
	for _, take := range takes {
		if !take.movesAnchor {
			continue
		}
		take.mu.Lock()
		take.movesAnchor = false
		take.bucket.moving = false
		if take.bucket.anchor == take.bucket.next {
			take.bucket.moveMS = max(now-take.bucket.next.b, 0)
		}
		close(take.bucket.moved)
		take.mu.Unlock()
	}
}

// redefine moves the anchors of a denied call's buckets whose definition has changed, because a
// lowered capacity trims the balance even if the call is denied. A forgotten bucket is left
// forgotten: it is full, so there is nothing to trim.
func (s *Store) redefine(ctx context.Context, lease weir.LeaseID, takes []*activeTake) error {
	for _, take := range takes {
		take.mu.Lock()
		was := take.fromAnchor
		moved := take.bucket.anchor != was // elsewhere: the next call redefines the bucket if needed
		if !take.movesAnchor || moved || was.b == 0 || was.rate == take.nextAnchor.rate || take.fromForgotten {
			take.mu.Unlock()
			continue
		}
		ch := s.newChain(lease, 0, 2)
		take.refill(ch, 0)
		take.mu.Unlock()
		v, err := s.carryOut(ctx, ch)
		if err != nil {
			return err
		}
		if v.created {
			take.mu.Lock()
			take.anchorMoved()
			if take.observed != nil { // the retry-after is computed with the new definition
				take.observed.bucket.move(take.nextAnchor, take.fromForgotten)
			}
			take.mu.Unlock()
		} else if err := s.readLimit(ctx, take.limitState); err != nil {
			return err
		}
	}
	return nil
}

// refill adds the transfers that move the anchor: one with the units regained up to the new anchor,
// and one with the change of the capacity, if it has changed.
func (s *activeTake) refill(ch *chain, holding int) {
	from := s.fromAnchor
	gain := uint64(0) // wider than a balance: a bucket in deep debt regains up to twice as much
	if from.b > 0 {
		gain = from.rate.WideGain(from.b, s.nextAnchor.b)
	}
	t := tb.Transfer{
		ID:             anchorID(s.spent, from.b, from.k, codeRefill),
		DebitAccountID: s.spent, CreditAccountID: s.account, Code: codeRefill, Flags: flagBalancing,
		Amount: tb.ToUint128(gain),
	}
	s.nextAnchor.write(&t)
	ch.addWithID(&t, roleRefill, holding)
	grown := s.nextAnchor.rate.CapacityMilli - from.rate.CapacityMilli
	if from.b == 0 || grown == 0 || s.fromForgotten {
		return
	}
	t = tb.Transfer{
		ID: anchorID(s.spent, from.b, from.k, codeCapacity), Code: codeCapacity,
		DebitAccountID: s.account, CreditAccountID: s.spent, Amount: tb.ToUint128(uint64(grown)),
	}
	if grown < 0 {
		t.DebitAccountID, t.CreditAccountID, t.Flags = s.spent, s.account, flagBalancing
		t.Amount = tb.ToUint128(uint64(-grown))
	}
	ch.addWithID(&t, roleRefill, holding)
}
