package conformance

import (
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// A store may forget a bucket that was removed, so the answers to some changes are not certain. What
// follows keeps a script away from them: it asks of the buckets that the model knows whether a change
// would show that one was forgotten.

// configure changes to other definitions whose consequences are certain, if there are any.
func (g *generator) configure() {
	sets := slices.Clone(g.script.Sets)
	g.rng.Shuffle(len(sets), func(i, j int) { sets[i], sets[j] = sets[j], sets[i] })
	for _, set := range sets {
		refused := deepest(set.Definitions) > g.script.Depth
		if refused || !g.unsure(set.Definitions) {
			g.do(Op{Verb: opConfigure, Set: set.Name})
			return
		}
	}
}

// configured notes which buckets a change has removed.
func (g *generator) configured(d *weir.Definitions) {
	g.inForce = d
	for _, b := range g.buckets() {
		if limits := g.applying(d, b.Subject); len(limits) > 0 {
			g.applied(&b, limits)
		}
	}
}

// applied notes a bucket that is not among the limits of its subject from now on.
func (g *generator) applied(b *knownBucket, limits []weir.Limit) {
	if !slices.ContainsFunc(limits, b.is) {
		g.gone[b.Key] = b.At
	}
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
	if !g.profile.Leeway.RemovedForgotten {
		return nil
	}
	var known []knownBucket
	for _, b := range g.model.Buckets() {
		known = append(known, knownBucket{b})
	}
	return known
}

// shows reports whether limits of its subject would show that a bucket was forgotten: it was removed
// since it was used last, and it is not full, or would be raised.
func (g *generator) shows(b *knownBucket, limits []weir.Limit) bool {
	i := slices.IndexFunc(limits, b.is)
	if i < 0 || b.Forgotten || b.Full && limits[i].Capacity <= b.Limit.Capacity {
		return false
	}
	used, gone := g.gone[b.Key]
	return gone && used == b.At
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
	if !g.profile.Leeway.RemovedForgotten {
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
