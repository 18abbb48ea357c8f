package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-limiter/weir"
)

// entities returns the entities of scripts: a family, names that are easily confused, and one for
// which nothing is configured.
func entities() []string {
	return []string{
		"bot", "bot", "bot", "team", "team", "org", "org", "a-1", "a.1", "auth0|é:=/%", "stranger",
	}
}

func resources() []string {
	return []string{"gpt", "gpt", "gpt", "openai/gpt-4o", "ft:gpt-4o::<\"é", "nowhere"}
}

func everies() []string { return []string{"hour", "day", "week", "month"} }

// zones returns zones that change their clocks at midnight, at one, at two, and by half an hour.
func zones() []string {
	return []string{"UTC", "Europe/Berlin", "America/Santiago", "America/Havana", "Australia/Lord_Howe"}
}

// starts returns instants at which a calendar changes. Scripts start at one or shortly before.
func starts() []string {
	return []string{
		"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", // Berlin
		"2026-04-05T03:00:00Z", "2026-09-06T04:00:00Z", // Santiago
		"2026-03-08T05:00:00Z", "2026-11-01T05:00:00Z", // Havana
		"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", // Lord Howe
		"2026-01-31T23:00:00Z", "2027-01-01T00:00:00Z", "2028-02-29T00:00:00Z",
	}
}

// The generators below draw from all that a number of bits can hold, and divide. If rapid had to
// draw again for a number that is too large, it would take long to shrink.

// sample draws one of the values. Rapid prefers the first ones, and shrinks to the first.
func sample[E any](t *rapid.T, label string, from ...E) E {
	return from[int(rapid.Uint8().Draw(t, label))%len(from)]
}

// oneIn draws true about once in n times. It shrinks to false.
func oneIn(t *rapid.T, label string, n uint8) bool {
	return rapid.Uint8().Draw(t, label)%n == n-1
}

// between draws a number from low to high. It shrinks to low.
func between(t *rapid.T, label string, low, high uint32) int64 {
	return int64(low + rapid.Uint32().Draw(t, label)%(high-low+1))
}

func seconds(t *rapid.T, label string, low, high uint32) time.Duration {
	return time.Duration(between(t, label, low, high)) * time.Second
}

// script draws a script without operations.
func script(h *Harness) *rapid.Generator[*Script] {
	limits := limits(h)
	return rapid.Custom(func(t *rapid.T) *Script {
		start, _ := time.Parse(time.RFC3339, sample(t, "start", starts()...))
		before := sample[uint32](t, "before at most", 5_000, 120_000, 7_200_000)
		const size, s, m = "lease memory size", time.Second, time.Minute
		script := &Script{
			Start:    start.Add(-time.Duration(between(t, "before", 0, before)) * time.Millisecond),
			Lifetime: sample(t, "lifetime", 0, 20*s, 90*s, 10*m),
			Memory:   sample(t, "lease memory", 0, 10*s, m, 10*m),
			Size:     sample(t, size, 0, 5, 0, 2, 20),
			Depth:    int(between(t, "depth", 1, uint32(max(1, min(3, h.Traits.CascadeDepth))))),
		}
		if h.NeverForgetsEarly {
			script.Size = 0
		}
		if oneIn(t, "the limiter has limits", 4) {
			script.Limits = limits.Draw(t, "limits")
		}
		script.Sets = []Set{{"base", definitions(limits, script.Depth).Draw(t, "definitions")}}
		return script
	})
}

// definitions draws a family of as many generations as the depth allows, and other entities.
func definitions(limits *rapid.Generator[[]weir.Limit], depth int) *rapid.Generator[*weir.Definitions] {
	return rapid.Custom(func(t *rapid.T) *weir.Definitions {
		d := &weir.Definitions{Resources: make(map[string][]weir.Limit)}
		if oneIn(t, "the system has limits", 3) {
			d.System = limits.Draw(t, "system")
		}
		for _, r := range []string{"gpt", "openai/gpt-4o", "ft:gpt-4o::<\"é"} {
			if rapid.Bool().Draw(t, r+" has limits") {
				d.Resources[r] = limits.Draw(t, r)
			}
		}
		cascades := depth > 1 || rapid.Bool().Draw(t, "team cascades")
		d.Entities = map[string]weir.EntityDefinition{
			"org":  {},
			"team": {Parent: "org", Cascade: cascades},
			"bot":  {Parent: "team", Cascade: !cascades || depth > 1},
			"a-1":  {Parent: "org", Cascade: rapid.Bool().Draw(t, "a-1 cascades")},
			"a.1":  {},
		}
		for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
			e := d.Entities[name]
			e.Limits = make(map[string][]weir.Limit)
			for _, r := range []string{"gpt", "openai/gpt-4o", weir.DefaultResource} {
				if rapid.Bool().Draw(t, name+" has limits on "+r) {
					e.Limits[r] = limits.Draw(t, name)
				}
			}
			d.Entities[name] = e
		}
		return d
	})
}

// limits draws the limits of one level.
func limits(h *Harness) *rapid.Generator[[]weir.Limit] {
	kinds := limitKinds()
	var all []*rapid.Generator[weir.Limit]
	for _, k := range h.Traits.Kinds {
		for _, draw := range kinds[k] {
			all = append(all, rapid.Custom(func(t *rapid.T) weir.Limit {
				l := draw(t)
				l.Kind = k
				l.Shadow = oneIn(t, "shadow", 6) && !h.Traits.NoShadow
				if h.WholeSeconds {
					l.RefillPeriod = (l.RefillPeriod + time.Second - 1).Truncate(time.Second)
				}
				return l
			}))
		}
	}
	name := func(l weir.Limit) string { return l.Name }
	return rapid.SliceOfNDistinct(rapid.OneOf(all...), 1, 6, name)
}

// maxBucket is the largest capacity of a bucket.
const maxBucket = 9_223_372_036_854_775

// limitKinds returns generators of limits by kind: quick and slow, small and as large as possible.
func limitKinds() map[weir.Kind][]func(*rapid.T) weir.Limit {
	const century = 100 * 365 * 24 * time.Hour
	units := func(t *rapid.T, low, high uint32) int64 { return between(t, "capacity", low, high) }
	budget := func(name string, every ...string) func(*rapid.T) weir.Limit {
		return func(t *rapid.T) weir.Limit {
			return weir.Limit{Name: name, Capacity: units(t, 5, 50),
				Every: sample(t, "every", every...), Zone: sample(t, "zone", zones()...)}
		}
	}
	window := func(name string, low, high, from, to uint32) func(*rapid.T) weir.Limit {
		return func(t *rapid.T) weir.Limit {
			return weir.Limit{Name: name, Capacity: units(t, low, high), Window: seconds(t, "window", from, to)}
		}
	}
	return map[weir.Kind][]func(*rapid.T) weir.Limit{
		weir.Bucket: {
			func(t *rapid.T) weir.Limit {
				return weir.Limit{Name: "rpm", Capacity: units(t, 2, 10),
					RefillAmount: between(t, "refill", 1, 10),
					RefillPeriod: time.Duration(between(t, "period", 900, 60_000)) * time.Millisecond}
			},
			func(*rapid.T) weir.Limit {
				return weir.Limit{Name: "tpm", Capacity: 1000, RefillAmount: 777, RefillPeriod: 7 * time.Second}
			},
			func(t *rapid.T) weir.Limit {
				return weir.Limit{Name: "slow", Capacity: 5, RefillAmount: 1,
					RefillPeriod: seconds(t, "period", 3600, 90_000)}
			},
			func(*rapid.T) weir.Limit {
				return weir.Limit{Name: "eon", Capacity: 100, RefillAmount: 1, RefillPeriod: century}
			},
			func(t *rapid.T) weir.Limit {
				return weir.Limit{Name: "huge", Capacity: maxBucket, RefillAmount: maxBucket / 3,
					RefillPeriod: seconds(t, "period", 1, 10_000)}
			},
		},
		weir.Window: {
			window("win", 3, 20, 1, 60),
			window("long", 20, 200, 600, 7200),
			func(t *rapid.T) weir.Limit {
				return weir.Limit{Name: "wide", Capacity: math.MaxInt64, Window: seconds(t, "window", 10, 100)}
			},
		},
		weir.Concurrency: {func(t *rapid.T) weir.Limit {
			return weir.Limit{Name: "par", Capacity: units(t, 1, 5), Timeout: seconds(t, "timeout", 2, 120)}
		}},
		weir.Budget: {budget("usd", everies()...), budget("hour", "hour")},
	}
}

// definitionsChange changes definitions.
type definitionsChange func(*weir.Definitions)

// changes draws a change of definitions.
func changes(h *Harness) *rapid.Generator[definitionsChange] {
	limits := limits(h)
	return rapid.OneOf(
		limitChange(func(t *rapid.T) func(*weir.Limit) {
			halves := sample[int64](t, "halves", 1, 3)
			return func(l *weir.Limit) {
				if l.Capacity < maxBucket {
					l.Capacity = max(1, l.Capacity*halves/2)
				}
			}
		}),
		limitChange(changeRate),
		limitChange(func(t *rapid.T) func(*weir.Limit) {
			other := limits.Draw(t, "others")[0]
			return func(l *weir.Limit) { // another kind under the same name
				if l.Kind != other.Kind {
					name := l.Name
					*l = other
					l.Name = name
				}
			}
		}),
		rapid.Map(rapid.Uint16(), func(which uint16) definitionsChange {
			return func(d *weir.Definitions) { // limits of another level apply, or none are left
				n := 0
				relevel(d, func(limits []weir.Limit) []weir.Limit {
					return slices.DeleteFunc(limits, func(weir.Limit) bool { n++; return chosen(which, n) })
				})
			}
		}),
		rapid.Map(limits, func(more []weir.Limit) definitionsChange {
			return func(d *weir.Definitions) {
				relevel(d, func(limits []weir.Limit) []weir.Limit {
					for _, l := range more {
						if !slices.ContainsFunc(limits, func(o weir.Limit) bool { return o.Name == l.Name }) {
							limits = append(limits, l)
						}
					}
					return limits
				})
			}
		}),
		rapid.Map(rapid.Bool(), func(cascades bool) definitionsChange {
			return func(d *weir.Definitions) { // other parents
				parent := func(name, parent string, cascade bool) {
					e := d.Entities[name]
					e.Parent, e.Cascade = parent, cascade
					d.Entities[name] = e
				}
				parent("team", "", false)
				parent("bot", "org", true)
				parent("a-1", "a.1", cascades)
			}
		}),
		rapid.Map(rapid.Just(4), func(generations int) definitionsChange { // more than any script allows
			return func(d *weir.Definitions) {
				d.Entities["gen0"] = weir.EntityDefinition{}
				for i := range generations {
					d.Entities[fmt.Sprintf("gen%d", i+1)] =
						weir.EntityDefinition{Parent: fmt.Sprintf("gen%d", i), Cascade: true}
				}
			}
		}),
	)
}

// limitChange draws a change that is made to some of the limits.
func limitChange(draw func(*rapid.T) func(*weir.Limit)) *rapid.Generator[definitionsChange] {
	return rapid.Custom(func(t *rapid.T) definitionsChange {
		which, with := rapid.Uint16().Draw(t, "which"), draw(t)
		return func(d *weir.Definitions) {
			n := 0
			for _, l := range d.All {
				if n++; chosen(which, n) {
					with(l)
				}
			}
		}
	})
}

// chosen reports whether the n-th of many is among those that a number selects: none for 0, and
// about half for any other. Rapid often draws small numbers, so their bits are spread.
func chosen(which uint16, n int) bool { return which*40503>>(7*n%16)&1 == 1 }

// changeRate draws a change of how fast units return.
func changeRate(t *rapid.T) func(*weir.Limit) {
	every, zone := sample(t, "every", everies()...), sample(t, "zone", zones()...)
	return func(l *weir.Limit) {
		switch l.Kind {
		case weir.Bucket:
			l.RefillAmount = max(1, l.RefillAmount/2)
		case weir.Window:
			l.Window = max(time.Second, l.Window/2).Truncate(time.Second)
		case weir.Concurrency:
			l.Timeout += 7 * time.Second
		case weir.Budget:
			l.Every, l.Zone = every, zone
		}
	}
}

// relevel replaces the limits of the system and of every resource and entity, in order.
func relevel(d *weir.Definitions, f func([]weir.Limit) []weir.Limit) {
	d.System = f(d.System)
	for _, r := range slices.Sorted(maps.Keys(d.Resources)) {
		d.Resources[r] = f(d.Resources[r])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Entities)) {
		limits := d.Entities[name].Limits
		for _, r := range slices.Sorted(maps.Keys(limits)) {
			limits[r] = f(limits[r])
		}
	}
}

// clone copies definitions as deeply as changes go.
func clone(d *weir.Definitions) *weir.Definitions {
	c := &weir.Definitions{
		System:    slices.Clone(d.System),
		Resources: make(map[string][]weir.Limit),
		Entities:  maps.Clone(d.Entities),
	}
	for name, limits := range d.Resources {
		c.Resources[name] = slices.Clone(limits)
	}
	for name, e := range c.Entities {
		limits := make(map[string][]weir.Limit)
		for r := range e.Limits {
			limits[r] = slices.Clone(e.Limits[r])
		}
		e.Limits = limits
		c.Entities[name] = e
	}
	return c
}
