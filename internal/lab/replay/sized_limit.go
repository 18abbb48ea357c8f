package replay

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// sizedLimit is an enforced limit as the definitions declare it. It has one capacity for all
// entities that it applies to.
type sizedLimit struct {
	// place is the list that declares it: "system", "resources.llm",
	// "entities.acme.resources.llm".
	place string
	limit weir.Limit
	index int // among those that are sized

	// calls is the number of calls that the limit judges, and most the number of units that is
	// enough for all of them.
	calls, most int64
	// over counts the calls by the index of the smallest round number that is at least their cost.
	over map[int]int64
	// denied has the number of calls that a capacity denies without other limits, by the index of
	// the round number.
	denied map[int]denialCount
}

// denialCount is the number of calls that a capacity denied; at least calls if the replay was not
// finished.
type denialCount struct {
	calls int64
	whole bool
}

// field is the limit's path in a limits file.
func (d *sizedLimit) field() string { return d.place + ".limits." + d.limit.Name }

// sized returns the limit with another capacity. A bucket keeps the ratio of its refill to its
// capacity, rounded up.
func (d *sizedLimit) sized(capacity int64) weir.Limit {
	l := d.limit
	l.Capacity = capacity
	if l.Kind != weir.Bucket {
		return l
	}
	hi, lo := bits.Mul64(uint64(d.limit.RefillAmount), uint64(capacity))
	l.RefillAmount = math.MaxInt64 // more than a bucket may have
	if whole := uint64(d.limit.Capacity); hi < whole {
		if refill, rest := bits.Div64(hi, lo, whole); refill < math.MaxInt64 {
			l.RefillAmount = int64(refill) + int64(fromBool(rest > 0))
		}
	}
	return l
}

// largest returns the index of the largest round number that the limit can have as its capacity.
func (d *sizedLimit) largest() int {
	i := lastRound
	for i > 1 && d.sized(roundNumber(i)).Validate() != nil {
		i--
	}
	return i
}

// tooSmall returns the index of the largest round number that surely denies more than allowed
// calls, because more calls than that cost more; 0 if there is none.
func (d *sizedLimit) tooSmall(allowed int64) int {
	more := int64(0)
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(d.over))) {
		if more += d.over[i]; more > allowed {
			return i - 1
		}
	}
	return 0
}

// units returns the units of the limit in costs. A concurrency limit that costs do not name costs
// 1.
func (d *sizedLimit) units(costs weir.Costs) int64 {
	n, named := costs[d.limit.Name]
	if !named && d.limit.Kind == weir.Concurrency {
		return 1
	}
	return n
}

// listPlace returns the list that declares the limits of a subject; empty if there is none.
func listPlace(d *weir.Definitions, s weir.Subject) string {
	levels := d.Config(s).Levels
	if len(levels) == 0 {
		return ""
	}
	switch levels[0].Level {
	case weir.LevelEntity:
		return entityPlace(s.Entity, s.Resource)
	case weir.LevelEntityDefault:
		return entityPlace(s.Entity, weir.DefaultResource)
	case weir.LevelResource:
		return resourcePlace(s.Resource)
	}
	return systemPlace
}

const systemPlace = "system"

func resourcePlace(name string) string { return "resources." + inPath(name) }

func entityPlace(entity, resource string) string {
	return "entities." + inPath(entity) + ".resources." + inPath(resource)
}

// inPath is a name as a part of a path. It is quoted if the path could be read in two ways.
func inPath(name string) string {
	if strings.Contains(name, ".resources") || strings.Contains(name, ".limits") {
		return `"` + name + `"`
	}
	return name
}

// mapLists returns a copy of definitions with change applied to each list of limits that is not
// empty. It goes through the lists in the order of [weir.Definitions.All].
func mapLists(
	d *weir.Definitions, change func(place string, limits []weir.Limit) []weir.Limit,
) *weir.Definitions {
	list := func(place string, limits []weir.Limit) []weir.Limit {
		if len(limits) == 0 {
			return nil
		}
		return change(place, limits)
	}
	out := &weir.Definitions{
		OnUnavailable: d.OnUnavailable, Retention: d.Retention, System: list(systemPlace, d.System),
		Resources: maps.Clone(d.Resources), Entities: maps.Clone(d.Entities),
	}
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		out.Resources[name] = list(resourcePlace(name), d.Resources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		e := d.Entities[name]
		e.Limits = maps.Clone(e.Limits)
		for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
			e.Limits[resource] = list(entityPlace(name, resource), e.Limits[resource])
		}
		out.Entities[name] = e
	}
	return out
}

// Round numbers have at most two significant digits. Their indexes count from 1: 1 to 99 are the
// first, then come 100, 110 and so on. A search among them takes few steps, and its result is easy
// to read.

// lastRound is the index of the largest round number that 64 bits hold: 9.2 · 10¹⁸.
const lastRound = 10 + 17*90 + 82

// roundNumber returns the round number with an index from 1 to lastRound.
func roundNumber(i int) int64 {
	if i < 10 {
		return int64(i)
	}
	n := int64(10 + (i-10)%90)
	for range (i - 10) / 90 {
		n *= 10
	}
	return n
}

// roundUp returns the index of the smallest round number that is at least n, or lastRound + 1.
func roundUp(n int64) int {
	if n > roundNumber(lastRound) {
		return lastRound + 1
	}
	if n < 10 {
		return int(max(n, 1))
	}
	tens := 0
	for n > 99 {
		n, tens = n/10+int64(fromBool(n%10 > 0)), tens+1
	}
	return 10 + 90*tens + int(n-10)
}
