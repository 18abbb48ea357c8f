package conformance

import (
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// A store with [Leeway] RemovedForgotten may forget a bucket that was removed, so the answers to
// some changes are not certain. What follows keeps a script away from them: it asks of the buckets
// that the model knows whether a change would show that one was forgotten.

// configured notes the definitions in force and which buckets they have removed.
func (m *machine) configured(d *weir.Definitions) {
	m.inForce = d
	for _, b := range m.buckets() {
		if limits := m.applying(d, b.Subject); len(limits) > 0 {
			m.applied(&b, limits)
		}
	}
}

// applied notes a bucket that is not among the limits of its subject from now on.
func (m *machine) applied(b *knownBucket, limits []weir.Limit) {
	if !slices.ContainsFunc(limits, b.is) {
		m.gone[b.Key] = b.At
	}
}

// unsure reports whether definitions would show that a bucket was forgotten.
func (m *machine) unsure(d *weir.Definitions) bool {
	return slices.ContainsFunc(m.buckets(), func(b knownBucket) bool {
		return m.shows(&b, m.applying(d, b.Subject))
	})
}

// knownBucket is one that the model knows.
type knownBucket struct{ model.BucketState }

func (b *knownBucket) is(l weir.Limit) bool { return l.Name == b.Name && l.Kind == b.Kind }

// buckets are those that the model knows; none where the store forgets none too early.
func (m *machine) buckets() []knownBucket {
	if !m.h.RemovedForgotten {
		return nil
	}
	var known []knownBucket
	for _, b := range m.model.Buckets() {
		known = append(known, knownBucket{b})
	}
	return known
}

// shows reports whether limits of its subject would show that a bucket was forgotten: it was
// removed since it was used last, and it is not full, or would be raised.
func (m *machine) shows(b *knownBucket, limits []weir.Limit) bool {
	i := slices.IndexFunc(limits, b.is)
	if i < 0 || b.Forgotten || b.Full && limits[i].Capacity <= b.Limit.Capacity {
		return false
	}
	used, gone := m.gone[b.Key]
	return gone && used == b.At
}

// applying are the limits that definitions, or the limiter's options, have for a subject.
func (m *machine) applying(d *weir.Definitions, s weir.Subject) []weir.Limit {
	if levels := d.Config(s).Levels; len(levels) > 0 {
		return levels[0].Limits
	}
	return m.script.Limits
}

// certain takes the brought limits from a request that would show that a bucket was forgotten.
func (m *machine) certain(o *Op) {
	if len(o.Bring) == 0 || !m.h.RemovedForgotten {
		return
	}
	reached := m.unconfigured(o.Charges)
	known := slices.DeleteFunc(m.buckets(), func(b knownBucket) bool {
		return !slices.Contains(reached, b.Subject)
	})
	if slices.ContainsFunc(known, func(b knownBucket) bool { return m.shows(&b, o.Bring) }) {
		o.Bring = nil
		return
	}
	for _, b := range known {
		m.applied(&b, o.Bring)
	}
}

// unconfigured are the subjects that charges reach and for which nothing is configured.
func (m *machine) unconfigured(charges []weir.Charge) []weir.Subject {
	var found []weir.Subject
	for _, c := range charges {
		s := weir.Subject{Entity: c.Entity, Resource: c.Resource}
		for range m.script.Depth + 1 {
			if len(m.applying(m.inForce, s)) == 0 {
				found = append(found, s)
			}
			config := m.inForce.Config(s)
			if !config.Cascade {
				break
			}
			s.Entity = config.Parent
		}
	}
	return found
}
