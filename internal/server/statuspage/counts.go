package statuspage

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// maxActivityLimits is how many pairs of name and kind are counted by themselves. Administrators
// may bring limits of any name with a reservation, so their number needs a bound.
const maxActivityLimits = 200

// limitKey is a limit's name and kind. The zero key stands for all that found no place.
type limitKey struct {
	name string
	kind weir.Kind
}

// limitNames gives every name and kind a place above zero, in the order in which they come, and
// place zero to those beyond the bound. Reading takes no lock: names come once and are asked for
// ever.
type limitNames struct {
	known atomic.Pointer[map[limitKey]limitPlace] // replaced, never changed
	mu    sync.Mutex                              // for who replaces it
}

// limitPlace is where a limit is counted. Its key is in memory of its own: a caller's name may be a
// part of a whole request body.
type limitPlace struct {
	index int
	key   limitKey
}

func (n *limitNames) place(name string, kind weir.Kind) limitPlace {
	key := limitKey{clip(name), weir.Kind(clip(string(kind)))}
	if p, ok := n.all()[key]; ok {
		return p
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.all()
	p, ok := known[key]
	if ok || len(known) >= maxActivityLimits {
		return p
	}
	next := make(map[limitKey]limitPlace, len(known)+1)
	maps.Copy(next, known)
	key = limitKey{strings.Clone(key.name), weir.Kind(strings.Clone(string(key.kind)))}
	p = limitPlace{len(next) + 1, key}
	next[key] = p
	n.known.Store(&next)
	return p
}

func (n *limitNames) all() map[limitKey]limitPlace {
	if known := n.known.Load(); known != nil {
		return *known
	}
	return nil
}

// maxActivityName bounds each name that is kept, in bytes: the longest that an entity may have.
const maxActivityName = 256

func clip(s string) string { return s[:min(len(s), maxActivityName)] }

// addUp adds d, unless it is negative, and stays at the largest int64 rather than overflow.
func addUp(n *int64, d int64) {
	if d > 0 {
		*n += min(d, math.MaxInt64-*n)
	}
}

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
func (r *secondRing) addTo(s *httpapi.ActivitySeconds, end uint64) {
	for i := range r {
		c := &r[i]
		age := end - c.stamp // huge where the stamp is of another era, or to come
		if age < activityWindow {
			addUp(&s.Admitted[activityWindow-1-age], c.admitted)
			addUp(&s.Denied[activityWindow-1-age], c.denied)
		}
	}
}
