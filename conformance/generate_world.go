package conformance

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// entities are those that scripts use: a family, names that are easily confused, one that nothing is
// configured for.
func entities() []string {
	return []string{"org", "org", "team", "team", "bot", "bot", "bot", "a-1", "a.1", "stranger"}
}

func resources() []string { return []string{"gpt", "gpt", "gpt", "openai/gpt-4o", "nowhere"} }

func everies() []string { return []string{"hour", "day", "week", "month"} }

// zones change their clocks at midnight, at one, at two, and by half an hour.
func zones() []string {
	return []string{"Europe/Berlin", "America/Santiago", "America/Havana", "Australia/Lord_Howe", "UTC"}
}

// starts are instants before which something happens to a calendar.
func starts() []string {
	return []string{
		"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", // Berlin
		"2026-04-05T03:00:00Z", "2026-09-06T04:00:00Z", // Santiago
		"2026-03-08T05:00:00Z", "2026-11-01T05:00:00Z", // Havana
		"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", // Lord Howe
		"2026-01-31T23:00:00Z", "2027-01-01T00:00:00Z", "2028-02-29T00:00:00Z",
	}
}

// world makes a script without operations.
func (g *generator) world() *Script {
	start, _ := time.Parse(time.RFC3339, choose(g, starts()))
	before := choose(g, []int64{5_000, 120_000, 7_200_000})
	s := &Script{
		Start:    start.Add(-time.Duration(g.between(0, before)) * time.Millisecond),
		Lifetime: choose(g, []time.Duration{0, 20 * time.Second, 90 * time.Second, 10 * time.Minute}),
		Memory:   choose(g, []time.Duration{0, 10 * time.Second, time.Minute, 10 * time.Minute}),
		Size:     g.memorySize(),
		Depth:    1 + g.rng.IntN(max(1, min(3, g.profile.Traits.CascadeDepth))),
	}
	if g.chance(4) {
		s.Limits = g.limits()
	}
	base := g.definitions(s.Depth)
	s.Sets = []Set{{"base", base}}
	for _, v := range []struct {
		name   string
		change func(*weir.Definitions)
	}{
		{"raised", g.scaled(3)},
		{"lowered", g.scaled(1)},
		{"rates", g.changed(g.changeRate)},
		{"kinds", g.changed(g.changeKind)},
		{"removed", g.thinned},
		{"added", g.fattened},
		{"parents", g.orphaned},
		{"deep", func(d *weir.Definitions) { deepen(d, s.Depth) }},
	} {
		d := clone(base)
		v.change(d)
		s.Sets = append(s.Sets, Set{v.name, d})
	}
	return s
}

// definitions are a family of as many generations as there may be, and others.
func (g *generator) definitions(depth int) *weir.Definitions {
	d := &weir.Definitions{
		Resources: make(map[string][]weir.Limit),
		Entities: map[string]weir.EntityDefinition{
			"org":  {},
			"team": {Parent: "org", Cascade: depth > 1 || g.chance(2)},
			"bot":  {Parent: "team", Cascade: true},
			"a-1":  {Parent: "org", Cascade: g.chance(2)},
			"a.1":  {},
		},
	}
	if g.chance(3) {
		d.System = g.limits()
	}
	for _, r := range []string{"gpt", "openai/gpt-4o"} {
		if g.chance(2) {
			d.Resources[r] = g.limits()
		}
	}
	if team := d.Entities["team"]; team.Cascade && depth == 1 {
		d.Entities["bot"] = weir.EntityDefinition{Parent: "team"}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		e := d.Entities[name]
		e.Limits = make(map[string][]weir.Limit)
		for _, r := range []string{"gpt", "openai/gpt-4o", weir.DefaultResource} {
			if g.chance(2) {
				e.Limits[r] = g.limits()
			}
		}
		d.Entities[name] = e
	}
	return d
}

// limits are those of one level.
func (g *generator) limits() []weir.Limit {
	all := g.catalogue()
	some := 3
	if len(all) < 7 {
		some = 2 // of few kinds there are more
	}
	var limits []weir.Limit
	for _, l := range all {
		if g.chance(some) {
			limits = append(limits, l)
		}
	}
	if len(limits) == 0 {
		limits = append(limits, choose(g, all))
	}
	return limits
}

// catalogue are limits of all sorts that the store has: quick and slow, small and as large as can
// be.
func (g *generator) catalogue() []weir.Limit {
	seconds := func(low, high int64) time.Duration {
		return time.Duration(g.between(low, high)) * time.Second
	}
	const century = 100 * 365 * 24 * time.Hour
	all := []weir.Limit{
		{Name: "rpm", Kind: weir.Bucket, Capacity: g.between(2, 10), RefillAmount: g.between(1, 10),
			RefillPeriod: time.Duration(g.between(900, 60_000)) * time.Millisecond},
		{Name: "tpm", Kind: weir.Bucket, Capacity: 1000, RefillAmount: 777, RefillPeriod: 7 * time.Second},
		{Name: "slow", Kind: weir.Bucket, Capacity: 5, RefillAmount: 1, RefillPeriod: seconds(3600, 90_000)},
		{Name: "eon", Kind: weir.Bucket, Capacity: 100, RefillAmount: 1, RefillPeriod: century},
		{Name: "huge", Kind: weir.Bucket, Capacity: maxBucket, RefillAmount: maxBucket / 3,
			RefillPeriod: seconds(1, 10_000)},
		{Name: "win", Kind: weir.Window, Capacity: g.between(3, 20), Window: seconds(1, 60)},
		{Name: "long", Kind: weir.Window, Capacity: g.between(20, 200), Window: seconds(600, 7200)},
		{Name: "wide", Kind: weir.Window, Capacity: 1<<63 - 1, Window: seconds(10, 100)},
		{Name: "par", Kind: weir.Concurrency, Capacity: g.between(1, 5), Timeout: seconds(2, 120)},
		{Name: "usd", Kind: weir.Budget, Capacity: g.between(5, 50), Every: choose(g, everies()),
			Zone: choose(g, zones())},
		{Name: "hour", Kind: weir.Budget, Capacity: g.between(5, 50), Every: "hour", Zone: choose(g, zones())},
	}
	for i := range all {
		all[i].Shadow = g.chance(6) && !g.profile.Traits.NoShadow
		if g.profile.Leeway.WholeSeconds {
			all[i].RefillPeriod = (all[i].RefillPeriod + time.Second - 1).Truncate(time.Second)
		}
	}
	return slices.DeleteFunc(all, func(l weir.Limit) bool {
		return !slices.Contains(g.profile.Traits.Kinds, l.Kind)
	})
}

// memorySize is how many ended leases are remembered; 0 for the default.
func (g *generator) memorySize() int {
	size := choose(g, []int{0, 0, 2, 5, 20})
	if g.profile.Leeway.Remembers {
		return 0
	}
	return size
}
