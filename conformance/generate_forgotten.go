package conformance

import (
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// Where a store may forget a bucket that was removed, or keep a full one for longer, the answers
// to some changes are not certain. What follows keeps a script away from them: it looks at the
// buckets that the model knows, and asks whether it would show that one was forgotten or kept.

// configure changes to other definitions whose consequences are certain, if there are any.
func (g *generator) configure() {
	sets := slices.Clone(g.script.Sets)
	g.rng.Shuffle(len(sets), func(i, j int) { sets[i], sets[j] = sets[j], sets[i] })
	for _, set := range sets {
		refused := deepest(set.Definitions) > g.script.Depth
		if refused || !g.unsure(set.Definitions) {
			raised := g.raised(set.Definitions)
			g.do(Op{Verb: opConfigure, Set: set.Name})
			for _, b := range raised {
				g.reserve(g.freshID(), weir.Charge{
					Entity: b.Entity, Resource: b.Resource, Costs: weir.Costs{b.Name: 0},
				})
			}
			return
		}
	}
}

// configured notes what a change has removed.
func (g *generator) configured(d *weir.Definitions) {
	g.inForce = d
	for _, b := range g.buckets() {
		if limits := g.applying(d, b.Subject); len(limits) > 0 {
			g.applied(&b, limits)
		}
	}
}

// raised are the buckets that are not full and would get a higher capacity. They are asked at once:
// were they forgotten first, the one that is kept would have been full at the capacity before.
func (g *generator) raised(d *weir.Definitions) []knownBucket {
	if !g.profile.Leeway.FullKept {
		return nil
	}
	return slices.DeleteFunc(g.buckets(), func(b knownBucket) bool {
		limits := g.applying(d, b.Subject)
		i := slices.IndexFunc(limits, b.is)
		return b.Full || i < 0 || limits[i].Capacity <= b.Limit.Capacity
	})
}

// trim is the least capacity that a bucket was under since the model used it.
type trim struct{ at, capacity int64 }

// applied notes that a bucket is under these limits from now on. One that is kept may be trimmed
// to the lowest capacity that it was under: the model does not touch one that it has forgotten.
func (g *generator) applied(b *knownBucket, limits []weir.Limit) {
	i := slices.IndexFunc(limits, b.is)
	g.gone[b.Key] = i < 0
	if i >= 0 {
		g.trimmed[b.Key] = trim{b.At, min(g.capacity(b), limits[i].Capacity)}
	}
}

// capacity is the least that a full bucket holds.
func (g *generator) capacity(b *knownBucket) int64 {
	if t, ok := g.trimmed[b.Key]; ok && t.at == b.At {
		return min(t.capacity, b.Limit.Capacity)
	}
	return b.Limit.Capacity
}

// unsure is true where it would show whether a bucket was forgotten.
func (g *generator) unsure(d *weir.Definitions) bool {
	return slices.ContainsFunc(g.buckets(), func(b knownBucket) bool {
		return g.shows(&b, g.applying(d, b.Subject))
	})
}

// knownBucket is one that the model knows.
type knownBucket struct{ model.BucketState }

func (b *knownBucket) is(l weir.Limit) bool { return l.Name == b.Name && l.Kind == b.Kind }

// buckets are those that the model knows; none where a store keeps to the page.
func (g *generator) buckets() []knownBucket {
	if !g.profile.Leeway.RemovedForgotten && !g.profile.Leeway.FullKept {
		return nil
	}
	var known []knownBucket
	for _, b := range g.model.Buckets() {
		known = append(known, knownBucket{b})
	}
	return known
}

// shows is true where it would show whether a bucket was forgotten, if these limits applied to it.
func (g *generator) shows(b *knownBucket, limits []weir.Limit) bool {
	i := slices.IndexFunc(limits, b.is)
	if i < 0 {
		return false
	}
	lee, raised := &g.profile.Leeway, limits[i].Capacity > g.capacity(b)
	switch {
	case b.Full && !raised:
		return false // it is full, kept or not
	case b.Full && lee.FullKept:
		return true
	case b.Forgotten:
		return false
	}
	return lee.RemovedForgotten && g.gone[b.Key]
}

// applying are the limits that definitions, or the limiter's options, have for a subject.
func (g *generator) applying(d *weir.Definitions, s weir.Subject) []weir.Limit {
	if levels := d.Config(s).Levels; len(levels) > 0 {
		return levels[0].Limits
	}
	return g.script.Limits
}

// bringable are the limits to bring where nothing is configured: always the same where a store may
// forget the others.
func (g *generator) bringable() []weir.Limit {
	if !g.profile.Leeway.RemovedForgotten && !g.profile.Leeway.FullKept {
		return g.limits()
	}
	if g.brings == nil {
		g.brings = g.limits()
	}
	return slices.Clone(g.brings)
}

// certain takes the brought limits from a request of which it would show whether a bucket was
// forgotten.
func (g *generator) certain(o *Op) {
	if len(o.Bring) == 0 {
		return
	}
	known := g.buckets()
	reached := g.unconfigured(o.Charges)
	known = slices.DeleteFunc(known, func(b knownBucket) bool {
		return !slices.Contains(reached, b.Subject)
	})
	if slices.ContainsFunc(known, func(b knownBucket) bool { return g.shows(&b, o.Bring) }) {
		o.Bring = nil
		return
	}
	for _, b := range known {
		g.applied(&b, o.Bring)
	}
}

// unconfigured are the subjects that charges reach and for which nothing is configured.
func (g *generator) unconfigured(charges []weir.Charge) []weir.Subject {
	var found []weir.Subject
	for _, c := range charges {
		s := weir.Subject{Entity: c.Entity, Resource: c.Resource}
		for range g.script.Depth + 1 {
			if len(g.applying(g.inForce, s)) == 0 {
				found = append(found, s)
			}
			config := g.inForce.Config(s)
			if !config.Cascade {
				break
			}
			s.Entity = config.Parent
		}
	}
	return found
}
