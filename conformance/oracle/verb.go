package oracle

import (
	"errors"
	"reflect"
	"slices"
)

// verb judges an adjust, complete, cancel or extend, or ends the log; its error says that the log
// is malformed.
func (c *checker) verb(l *verbLine) error {
	adjust, complete, end := l.Kind == "adjust", l.Kind == "complete", l.Kind == "end"
	switch {
	case adjust != (l.Seq != nil), end != (l.Lease == ""), l.Totals != nil && !adjust,
		l.Actuals != nil && !complete, end && l.Error != "":
		return errors.New("no lease, or not the fields of " + l.Kind)
	case end:
		c.ended = true
		return nil
	case l.Error == "" && (complete || l.Kind == "cancel"):
		c.report.Settled++
	}
	var want due
	known := c.leases[l.Lease]
	if known == nil {
		want.add(otherError, "no lease has this ID")
		c.met(l.Kind, l.Error, want)
		return nil
	}
	if state, forgotten := known.state(c.now); state != live {
		known.afterwards(l, state, &want)
		if forgotten {
			want.add(anyError, "the lease may be forgotten")
		}
		c.met(l.Kind, l.Error, want)
		return nil
	}
	stands := known.change(c.now, l, &want)
	late := adjust && *l.Seq <= known.seq
	if late {
		want.add(done, "the sequence number is a replay or came too late")
	}
	if c.met(l.Kind, l.Error, want) && !late {
		known.carryOut(c.now, l, stands)
	}
	return nil
}

// afterwards adds what is due for a verb on a lease that is no longer live.
func (l *lease) afterwards(line *verbLine, state leaseState, want *due) {
	cancel := line.Kind == "cancel"
	same := reflect.DeepEqual(l.actuals, line.Actuals)
	switch {
	case state == expired, !cancel && line.Kind != "complete":
		want.add(ended, "the lease is %s", state)
	case cancel && state == cancelled, !cancel && state == completed && same:
		want.add(done, "the lease was %s with the same content", state)
	default:
		want.add(conflict, "the lease was %s otherwise", state)
	}
}

// change works out the units of the parts that a verb changes, and adds to what is due if it names
// them wrongly.
func (l *lease) change(now int64, line *verbLine, want *due) map[*part]map[int]int64 {
	named := slices.Concat(line.Totals, line.Actuals) // a line has one of them
	stands := restate(l.parts, named, want)
	for p, units := range stands {
		n, _ := sum(units)
		if p.limit.kind == "concurrency" && n > p.total {
			want.add(otherError, "%d of %s are named, the lease has %d", n, p.limit.name, p.total)
		}
	}
	if len(named) > len(l.charges) {
		want.add(otherError, "%d totals for %d charges", len(named), len(l.charges))
	}
	for _, p := range l.parts {
		slots := p.limit.kind == "concurrency"
		if line.Kind == "cancel" || slots && line.Kind == "complete" {
			stands[p] = nil // gives everything back
		}
	}
	return stands
}

// carryOut changes the books.
func (l *lease) carryOut(now int64, line *verbLine, stands map[*part]map[int]int64) {
	for p, units := range stands {
		p.units = units
		n, _ := sum(units)
		p.limit.meter.change(now, p, n)
	}
	switch line.Kind {
	case "adjust":
		l.seq = *line.Seq
	case "complete":
		l.settled, l.settledAt, l.actuals = completed, now, line.Actuals
	case "cancel":
		l.settled, l.settledAt = cancelled, now
	case "extend":
		l.expires = now + l.life
		for _, p := range l.parts {
			if o, is := p.limit.meter.(*occupancy); is && p.limit.kind == "concurrency" {
				o.renew(now, p)
			}
		}
	}
}
