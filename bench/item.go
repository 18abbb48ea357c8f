package main

import "regexp"

// worldSpec is what one child process sets up before anything is measured.
type worldSpec struct {
	// Name chooses the world; see buildWorld.
	Name string `json:"name"`
	// Live is how many leases stay live in a world of weir. A rival has none.
	Live int `json:"live"`
	// Remembered is how many ended leases weir remembers when the measuring starts.
	Remembered int `json:"remembered"`
	// Keys is how many keys there are; 1 is a hot key.
	Keys int `json:"keys"`
	// Procs is GOMAXPROCS of the process, and how many goroutines share the operations.
	Procs int `json:"procs"`
	// Empty is true where the limit has nothing left, so that every operation is denied.
	Empty bool `json:"empty"`
	// CPUs is the list of processors to pin the process to, as taskset takes it; empty for any.
	CPUs string `json:"cpus"`
	// Servers are the addresses that a world of load asks, by the name of their world.
	Servers map[string]string `json:"servers,omitempty"`
	// Profile is the file that gets a CPU profile of all that is measured; empty for none.
	Profile string `json:"profile"`
}

// side is one of the works that an item runs in turn.
type side struct {
	label string
	world int // in the item's worlds
	work  string
}

// ratio compares two sides of an item, by their position.
type ratio struct {
	over, under int
	// goal and aim bound the ratio, in thousandths; 0 for none. A ratio of costs is to be at most
	// the goal; see least.
	goal, aim int64
	// least is true for a ratio of speeds, which is to be at least the goal.
	least bool
	// label names the ratio. Default: the labels of both sides.
	label string
}

// item is one comparison: some worlds, the works that are run in turn on them, and which of them
// are compared.
type item struct {
	name   string
	title  string
	worlds []worldSpec
	sides  []side
	ratios []ratio
	note   string // what the rival does not do
	speeds bool   // operations a second are shown too
	// served is true where the worlds are servers; their works are run by a generator of load.
	served bool
}

// keep leaves only the sides whose label matches, and the ratios and worlds that are left with them.
// It reports whether any side is left.
func (x *item) keep(labels *regexp.Regexp) bool {
	x.sides, x.worlds, x.ratios = pick(labels, x.sides, x.worlds, x.ratios)
	return len(x.sides) > 0
}

// pick returns the sides whose label matches, and the worlds and ratios that are left with them, in
// their new positions.
func pick[W any](
	labels *regexp.Regexp, sides []side, worlds []W, ratios []ratio,
) (keptSides []side, keptWorlds []W, keptRatios []ratio) {
	newSide, newWorld := make(map[int]int), make(map[int]int)
	for i, s := range sides {
		if !labels.MatchString(s.label) {
			continue
		}
		at, ok := newWorld[s.world]
		if !ok {
			at = len(keptWorlds)
			newWorld[s.world] = at
			keptWorlds = append(keptWorlds, worlds[s.world])
		}
		newSide[i] = len(keptSides)
		s.world = at
		keptSides = append(keptSides, s)
	}
	for _, r := range ratios {
		over, both := newSide[r.over]
		under, ok := newSide[r.under]
		if both && ok {
			r.over, r.under = over, under
			keptRatios = append(keptRatios, r)
		}
	}
	return keptSides, keptWorlds, keptRatios
}
