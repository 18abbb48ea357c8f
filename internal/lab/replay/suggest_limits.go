package replay

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// sizedLimit is an enforced limit where the definitions have it. It has one capacity, shared by all
// entities that it applies to.
type sizedLimit struct {
	// place is the list that it stands in: "system", "resources.llm",
	// "entities.acme.resources.llm".
	place string
	limit weir.Limit
	index int // among those that are sized

	// calls is how many the limit judges, and most the units that are enough for all of them.
	calls, most int64
	// over counts the calls by what they cost: by the smallest round number that is enough.
	over map[int]int64
	// denied is what capacities deny by themselves, by the count of the round number.
	denied map[int]denialCount
}

// denialCount is how many calls a capacity denied; at least calls if it was not tried to the end.
type denialCount struct {
	calls int64
	whole bool
}

// field is where the limit stands in a limits file.
func (d *sizedLimit) field() string { return d.place + ".limits." + d.limit.Name }

// sized returns the limit with another capacity. A bucket keeps the ratio of its refill to its
// capacity, rounded up.
func (d *sizedLimit) sized(capacity int64) weir.Limit {
	l := d.limit
	l.Capacity = capacity
	if l.Kind != weir.Bucket {
		return l
	}
	refill := big.NewInt(d.limit.RefillAmount)
	refill.Mul(refill, big.NewInt(capacity))
	rest := new(big.Int)
	refill.QuoRem(refill, big.NewInt(d.limit.Capacity), rest)
	if rest.Sign() > 0 {
		refill.Add(refill, big.NewInt(1))
	}
	l.RefillAmount = math.MaxInt64 // more than a bucket may have
	if refill.IsInt64() {
		l.RefillAmount = refill.Int64()
	}
	return l
}

// largest counts the largest round number that the limit can have as its capacity.
func (d *sizedLimit) largest() int {
	i := lastRound
	for i > 1 && d.sized(roundNumber(i)).Validate() != nil {
		i--
	}
	return i
}

// tooSmall counts the largest round number that surely denies more than allowed calls by itself,
// since more than that cost more; 0 if there is none.
func (d *sizedLimit) tooSmall(allowed int64) int {
	more := int64(0)
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(d.over))) {
		if more += d.over[i]; more > allowed {
			return i - 1
		}
	}
	return 0
}

// listPlace says in which list the limits of a subject stand; empty if it has none.
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

// inPath is a name as a part of a path: in quotes if the path would be that of something else too.
func inPath(name string) string {
	if strings.Contains(name, ".resources") || strings.Contains(name, ".limits") {
		return `"` + name + `"`
	}
	return name
}

// eachList passes on every list of limits in the order of the definitions.
func eachList(d *weir.Definitions, pass func(place string, limits []weir.Limit)) {
	pass(systemPlace, d.System)
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		pass(resourcePlace(name), d.Resources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		limits := d.Entities[name].Limits
		for _, resource := range slices.Sorted(maps.Keys(limits)) {
			pass(entityPlace(name, resource), limits[resource])
		}
	}
}

// mapLists returns a copy of some definitions in which each list of limits that is not empty is
// what change makes of it.
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
		OnUnavailable: d.OnUnavailable, System: list(systemPlace, d.System),
		Resources: make(map[string][]weir.Limit, len(d.Resources)),
		Entities:  make(map[string]weir.EntityDefinition, len(d.Entities)),
	}
	for name, limits := range d.Resources {
		out.Resources[name] = list(resourcePlace(name), limits)
	}
	for name, e := range d.Entities {
		e.Limits = maps.Clone(e.Limits)
		for resource, limits := range e.Limits {
			e.Limits[resource] = list(entityPlace(name, resource), limits)
		}
		out.Entities[name] = e
	}
	return out
}

// The numbers with at most two significant digits are counted from 1: 1 to 99 are the first, then
// come 100, 110 and so on. A search among them takes few steps, and what it finds can be read.

// lastRound is the largest of them that 64 bits hold: 9.2 · 10¹⁸.
const lastRound = 10 + 17*90 + 82

// roundNumber returns the number with that count, from 1 to lastRound.
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

// roundUp counts the smallest such number that is at least n, or returns one more than lastRound.
func roundUp(n int64) int {
	if n > roundNumber(lastRound) {
		return lastRound + 1
	}
	if n < 10 {
		return int(max(n, 1))
	}
	tens := 0
	for n > 99 {
		up := n%10 > 0
		n, tens = n/10, tens+1
		if up {
			n++
		}
	}
	return 10 + 90*tens + int(n-10)
}
