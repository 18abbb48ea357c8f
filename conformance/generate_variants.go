package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

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

// changed is a configuration in which every third limit is another one.
func (g *generator) changed(change func(*weir.Limit)) func(*weir.Definitions) {
	return func(d *weir.Definitions) {
		for _, l := range d.All {
			if g.chance(3) {
				change(l)
			}
		}
	}
}

// scaled raises or lowers capacities to so many halves.
func (g *generator) scaled(halves int64) func(*weir.Definitions) {
	return g.changed(func(l *weir.Limit) {
		if l.Capacity < maxBucket {
			l.Capacity = max(1, l.Capacity*halves/2)
		}
	})
}

// changeRate changes how fast units return.
func (g *generator) changeRate(l *weir.Limit) {
	switch l.Kind {
	case weir.Bucket:
		l.RefillAmount = max(1, l.RefillAmount/2)
	case weir.Window:
		l.Window = max(time.Second, l.Window/2).Truncate(time.Second)
	case weir.Concurrency:
		l.Timeout += 7 * time.Second
	case weir.Budget:
		l.Every, l.Zone = choose(g, everies()), choose(g, zones())
	}
}

// changeKind makes a limit one of another kind, under the same name.
func (g *generator) changeKind(l *weir.Limit) {
	all := g.catalogue()
	all = slices.DeleteFunc(all, func(o weir.Limit) bool { return o.Kind == l.Kind })
	if len(all) == 0 {
		return
	}
	name := l.Name
	*l = choose(g, all)
	l.Name = name
}

// relevel replaces the limits of every resource and entity, in order.
func relevel(d *weir.Definitions, f func([]weir.Limit) []weir.Limit) {
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

// thinned removes limits, so that others show through or none is left.
func (g *generator) thinned(d *weir.Definitions) {
	thin := func(limits []weir.Limit) []weir.Limit {
		return slices.DeleteFunc(limits, func(weir.Limit) bool { return g.chance(2) })
	}
	d.System = thin(d.System)
	relevel(d, thin)
}

// fattened adds limits to every level.
func (g *generator) fattened(d *weir.Definitions) {
	add := func(limits []weir.Limit) []weir.Limit {
		for _, l := range g.limits() {
			if !slices.ContainsFunc(limits, func(o weir.Limit) bool { return o.Name == l.Name }) {
				limits = append(limits, l)
			}
		}
		return limits
	}
	relevel(d, add)
}

// orphaned changes who is whose parent.
func (g *generator) orphaned(d *weir.Definitions) {
	set := func(name, parent string, cascade bool) {
		e := d.Entities[name]
		e.Parent, e.Cascade = parent, cascade
		d.Entities[name] = e
	}
	set("team", "", false)
	set("bot", "org", true)
	set("a-1", "a.1", g.chance(2))
}

// deepen adds a chain that is longer than it may be.
func deepen(d *weir.Definitions, depth int) {
	d.Entities["gen0"] = weir.EntityDefinition{}
	for i := range depth + 1 {
		name := fmt.Sprintf("gen%d", i+1)
		d.Entities[name] = weir.EntityDefinition{Parent: fmt.Sprintf("gen%d", i), Cascade: true}
	}
}
