package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// answer is what the semantics say of a reservation.
type answer struct {
	allowed  bool
	retry    int64 // ms
	statuses []statusLine
}

// reserve judges a reservation; its error says that the log is malformed.
func (c *checker) reserve(l *reserveLine) error {
	switch failed := l.Error != ""; {
	case l.Lease == "" || failed == (l.Allowed != nil) ||
		failed && (l.Limits != nil || l.RetryAfterMS != 0):
		return errors.New("a reserve has a lease, and either a decision or an error")
	case failed:
		c.report.Errors++
	case *l.Allowed:
		c.report.Admitted++
	default:
		c.report.Denied++
	}
	var want due
	if known := c.leases[l.Lease]; known != nil {
		known.reserveAgain(c.now, l, &want)
		if c.met("decision", l.Error, want) {
			c.compare(l, known.answer)
		}
		return nil
	}
	parts := c.plan(l.Charges, &want)
	var a *answer
	if len(want.outcomes) == 0 {
		a = c.judge(parts, &want)
	}
	right := c.met("decision", l.Error, want)
	if l.Error != "" || a == nil {
		return nil
	}
	if *l.Allowed {
		c.admit(l, parts, a)
	}
	if right {
		c.compare(l, a)
	}
	return nil
}

// reserveAgain adds what is due for a reservation whose lease is known.
func (l *lease) reserveAgain(now int64, line *reserveLine, want *due) {
	state, forgotten := l.state(now)
	switch {
	case forgotten:
		want.add(anyError, "the lease was %s and is forgotten", state)
	case state != live:
		want.add(ended, "the lease is %s", state)
	case !reflect.DeepEqual(l.charges, line.Charges):
		want.add(conflict, "the lease is live with other charges")
	}
}

// judge says what the limits answer, before anything is charged, and adds to what is due if they
// never can.
func (c *checker) judge(parts []*part, want *due) *answer {
	a := &answer{allowed: true}
	for _, p := range parts {
		if p.units == nil {
			continue
		}
		l := p.limit
		n, _ := sum(p.units)
		left := l.meter.available(c.now).String()
		s := statusLine{
			Entity: l.subject.entity, Resource: l.subject.resource, Limit: l.name, Kind: l.kind,
			Capacity: l.capacity, Requested: n, Available: json.Number(left), Shadow: l.shadow,
			Exceeded: !l.fits(c.now, n), RetryAfterMS: l.firstFit(c.now, n),
			why: fmt.Sprintf("%d of %s are asked and %s were left", n, l.name, left),
		}
		if s.Exceeded && !s.Shadow {
			a.allowed = false
			a.retry = max(a.retry, s.RetryAfterMS)
		}
		if n > l.capacity && !l.shadow {
			want.add(neverSatisfiable, "%d of %s is above its capacity", n, l.name)
		}
		a.statuses = append(a.statuses, s)
	}
	return a
}

// admit charges every part, keeps the lease and turns what was left into what is left.
func (c *checker) admit(l *reserveLine, parts []*part, a *answer) {
	made := &lease{charges: l.Charges, parts: parts, answer: a, life: leaseLife}
	c.leases[l.Lease] = made
	judged := 0
	for _, p := range parts {
		if p.units == nil {
			continue
		}
		n, _ := sum(p.units)
		p.limit.meter.change(c.now, p, n)
		if n > 0 {
			made.life = max(made.life, p.limit.timeout)
		}
		a.statuses[judged].Available = json.Number(p.limit.meter.available(c.now).String())
		judged++
	}
	made.expires = c.now + made.life
}
