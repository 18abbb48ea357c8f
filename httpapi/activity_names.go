package httpapi

import (
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-limiter/weir"
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
