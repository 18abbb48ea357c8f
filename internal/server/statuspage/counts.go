package statuspage

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// maxLimits bounds the pairs of name and kind with their own counts, because requests may bring
// limits with any name.
const maxLimits = 200

// limitKey is the name and kind of a limit. The zero key stands for all limits beyond the bound.
type limitKey struct {
	name string
	kind weir.Kind
}

// limitNames numbers limits by name and kind from 1, in the order in which they first occur. Those
// beyond the bound have the index 0. Readers take no lock: a change replaces the map, and changes
// are rare because names are never removed.
type limitNames struct {
	known atomic.Pointer[map[limitKey]countedLimit] // replaced, never changed
	mu    sync.Mutex                                // for replacing it
}

// countedLimit is a numbered limit. The strings of its key are copies, because the caller's strings
// may keep a whole request body in memory.
type countedLimit struct {
	index int
	key   limitKey
}

// find returns the limit with a name and kind, and numbers it if it is new.
func (n *limitNames) find(name string, kind weir.Kind) countedLimit {
	key := limitKey{clip(name), weir.Kind(clip(string(kind)))}
	if p, ok := n.all()[key]; ok {
		return p
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.all()
	p, ok := known[key]
	if ok || len(known) >= maxLimits {
		return p
	}
	next := make(map[limitKey]countedLimit, len(known)+1)
	maps.Copy(next, known)
	key = limitKey{strings.Clone(key.name), weir.Kind(strings.Clone(string(key.kind)))}
	p = countedLimit{len(next) + 1, key}
	next[key] = p
	n.known.Store(&next)
	return p
}

func (n *limitNames) all() map[limitKey]countedLimit {
	if known := n.known.Load(); known != nil {
		return *known
	}
	return nil
}

// maxNameBytes bounds each name that is kept: the longest that an entity may have.
const maxNameBytes = 256

// clip bounds a name, and cuts no letter in two.
func clip(s string) string {
	if len(s) <= maxNameBytes {
		return s
	}
	end := maxNameBytes
	for end > maxNameBytes-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// addUp adds d to n unless d is negative. It stops at the largest int64 instead of overflowing.
func addUp(n *int64, d int64) {
	if d > 0 {
		*n += min(d, math.MaxInt64-*n)
	}
}

const (
	// reportSeconds is the number of seconds in a report, including the current one.
	reportSeconds = 120
	// secondCells is the next power of two, so that a mask finds the cell of a second.
	secondCells = 128
	// believedStep is the number of seconds that an event may be behind the latest one. If it is
	// further behind, the clock has stepped back, and earlier counts are not comparable with later
	// ones.
	believedStep = 60
	// secondBits is the number of bits of a stamp that hold the second. The bits above hold the
	// era.
	secondBits = 48
	secondMask = 1<<secondBits - 1
)

// secondClock is the latest second of any event, as a stamp. The upper 16 bits of a stamp are an
// era, which grows whenever the clock steps back; the bits below are the Unix second.
type secondClock struct{ latest atomic.Uint64 }

// stamp returns the stamp of an instant.
func (c *secondClock) stamp(at time.Time) uint64 {
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

// end returns the stamp of the last second of a report. It is not earlier than the latest event
// unless the clock has stepped back after that event.
func (c *secondClock) end(now time.Time) uint64 {
	old := c.latest.Load()
	second, latest := uint64(max(now.Unix(), 0))&secondMask, old&secondMask
	if second < latest && latest-second <= believedStep {
		second = latest
	}
	return old&^secondMask | second
}

// secondRing has the counts of the last seconds, each in the cell selected by its stamp.
type secondRing [secondCells]secondCounts

type secondCounts struct {
	stamp            uint64
	admitted, denied int64
}

// at returns the cell of a stamp, and clears it if it holds an older second.
func (r *secondRing) at(stamp uint64) *secondCounts {
	c := &r[stamp%secondCells]
	if c.stamp != stamp {
		*c = secondCounts{stamp: stamp}
	}
	return c
}

// addTo adds the counts to a report whose last second has the stamp end.
func (r *secondRing) addTo(s *httpapi.ActivitySeconds, end uint64) {
	for i := range r {
		c := &r[i]
		age := end - c.stamp // huge if the stamp is of another era or later than end
		if age < reportSeconds {
			addUp(&s.Admitted[reportSeconds-1-age], c.admitted)
			addUp(&s.Denied[reportSeconds-1-age], c.denied)
		}
	}
}
