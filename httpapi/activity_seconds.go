package httpapi

import (
	"sync/atomic"
	"time"
)

const (
	// activityWindow is how many seconds a report has, the one under way included.
	activityWindow = 120
	// secondSlots is a power of two above it, so that a second's slot is a mask away.
	secondSlots = 128
	// believedStep is how far the clock may be behind the latest second before it is believed: then
	// it had been wrong, and the seconds that it made up are not comparable with those to come.
	believedStep = 60
	// secondBits are the bits of a stamp that hold the second. Above them is its era.
	secondBits = 48
	secondMask = 1<<secondBits - 1
)

// activityClock is the latest second that any call has brought, in one word: an era in the upper 16
// bits, which changes whenever the clock is believed to step back, and the Unix second below it.
type activityClock struct{ latest atomic.Uint64 }

// stamp returns the era and second of an instant.
func (c *activityClock) stamp(at time.Time) uint64 {
	for second := uint64(max(at.Unix(), 0)) & secondMask; ; {
		old := c.latest.Load()
		era, latest := old&^secondMask, old&secondMask
		if second <= latest && latest-second <= believedStep {
			return era | second
		}
		if second < latest {
			era += 1 << secondBits
		}
		if c.latest.CompareAndSwap(old, era|second) {
			return era | second
		}
	}
}

// end is the stamp of the last second of a report made at an instant: not before what was counted,
// unless the clock has stepped back since.
func (c *activityClock) end(now time.Time) uint64 {
	old := c.latest.Load()
	second, latest := uint64(max(now.Unix(), 0))&secondMask, old&secondMask
	if second < latest && latest-second <= believedStep {
		second = latest
	}
	return old&^secondMask | second
}

// secondRing has the counts of the last seconds, each in the slot that its number points to.
type secondRing [secondSlots]secondCounts

type secondCounts struct {
	stamp            uint64
	admitted, denied int64
}

// at returns the slot of a stamp. Whatever older was in it is gone.
func (r *secondRing) at(stamp uint64) *secondCounts {
	c := &r[stamp%secondSlots]
	if c.stamp != stamp {
		*c = secondCounts{stamp: stamp}
	}
	return c
}

// addTo adds the counts of the report's seconds, the last of which has the stamp end.
func (r *secondRing) addTo(s *ActivitySeconds, end uint64) {
	for i := range r {
		c := &r[i]
		age := end - c.stamp // huge where the stamp is of another era, or to come
		if age < activityWindow {
			addUp(&s.Admitted[activityWindow-1-age], c.admitted)
			addUp(&s.Denied[activityWindow-1-age], c.denied)
		}
	}
}
