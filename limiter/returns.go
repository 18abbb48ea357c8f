package limiter

import (
	"math/bits"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// slotReturns estimates when slots of concurrency limits return. A store knows when a hold times
// out, which is minutes away, but calls settle in seconds. The estimate is how long leases of this
// process have held slots of the limit, on average, and it is an estimate only: another server's
// leases are not in it, and to forget it is harmless.
//
// Each denied call is given an instant of its own, so that callers come one after the other as
// slots return and not all at once. The instants lie half as far apart as slots return: a caller
// that comes in vain costs less than a slot that stays free (ADR 46).
type slotReturns struct {
	segments [16]returnSegment
}

type returnSegment struct {
	mu sync.Mutex
	of map[fingerprint]*limitReturns // by limit
}

// limitReturns has the estimate of one limit.
type limitReturns struct {
	heldMS int64 // for how long a slot is held: a moving average, times heldScale
	nextMS int64 // the latest instant that a denied call was given, in Unix milliseconds
}

const (
	// heldScale is the part of the average by which each return changes it, and its unit.
	heldScale = 16
	// maxReturns bounds the limits in a segment. A full segment is emptied.
	maxReturns = 4096
)

// apartMS returns how far apart calls for n slots come again: of all slots together, one returns
// every heldMS / capacity.
func (r *limitReturns) apartMS(n, capacity int64) int64 {
	hi, lo := bits.Mul64(uint64(r.heldMS/heldScale), uint64(min(n, capacity)))
	apart, _ := bits.Div64(hi, lo, 2*uint64(max(1, capacity)))
	return int64(apart)
}

// limitKey returns the key of a limit: a hash, since to mix up two limits would be harmless.
func limitKey(s *weir.Subject, limit string) fingerprint {
	return fingerprintSeed.addString(s.Entity).addString(s.Resource).addString(limit)
}

func (r *slotReturns) segment(k fingerprint) *returnSegment {
	return &r.segments[k%fingerprint(len(r.segments))]
}

// note notes that slots of a limit have returned that were held for some milliseconds.
func (r *slotReturns) note(s *weir.Subject, limit string, heldMS int64) {
	key := limitKey(s, limit)
	seg := r.segment(key)
	seg.mu.Lock()
	defer seg.mu.Unlock()
	known := seg.of[key]
	if known != nil {
		known.heldMS += max(0, heldMS) - known.heldMS/heldScale
		return
	}
	if seg.of == nil || len(seg.of) == maxReturns {
		seg.of = make(map[fingerprint]*limitReturns)
	}
	seg.of[key] = &limitReturns{heldMS: max(0, heldMS) * heldScale}
}

// likely returns after how long slots for a call that was denied are likely to have returned, at
// most until the holds time out; 0 if none were seen to return.
func (r *slotReturns) likely(now time.Time, s *weir.LimitStatus) time.Duration {
	key := limitKey(&weir.Subject{Entity: s.Entity, Resource: s.Resource}, s.Limit)
	seg := r.segment(key)
	seg.mu.Lock()
	defer seg.mu.Unlock()
	known := seg.of[key]
	if known == nil {
		return 0
	}
	nowMS := now.UnixMilli()
	next := max(known.nextMS, nowMS) + max(1, known.apartMS(s.Requested, s.Capacity))
	wait := time.Duration(next-nowMS) * time.Millisecond
	if wait >= s.RetryAfter {
		return s.RetryAfter
	}
	known.nextMS = next
	return wait
}
