package oracle

import (
	"fmt"
	"math/big"
)

// maxSpanMS bounds windows, timeouts and refill periods: three thousand years.
const maxSpanMS = 100_000_000_000_000

type subjectKey struct{ entity, resource string }

// subject is the limits of one entity on one resource.
type subject struct {
	parent string
	limits []*limit
}

// limit is one rule of one subject with its state.
type limit struct {
	subject    subjectKey
	name, kind string
	capacity   int64
	shadow     bool
	timeout    int64 // ms, concurrency only
	meter      meter
}

// meter is the state of one limit.
type meter interface {
	// available is what is left, in whole units rounded down, negative in debt. It may be asked
	// ahead: then it is what would be left if nobody came before.
	available(at int64) *big.Int
	// change makes a part stand for total units in all. Its times never go back.
	change(at int64, p *part, total int64)
}

// define keeps a subject; its error says that the log is malformed.
func (c *checker) define(l *subjectLine) error {
	key := subjectKey{l.Entity, l.Resource}
	if l.Entity == "" || l.Resource == "" || c.subjects[key] != nil {
		return fmt.Errorf("subject %q/%q has no name or is defined twice", l.Entity, l.Resource)
	}
	s := &subject{parent: l.Parent}
	names := map[string]bool{"": true}
	for i := range l.Limits {
		made, err := c.makeLimit(key, &l.Limits[i])
		if err != nil {
			return fmt.Errorf("limit %q: %w", l.Limits[i].Name, err)
		}
		if names[made.name] {
			return fmt.Errorf("limit %q has no name or is defined twice", made.name)
		}
		names[made.name] = true
		s.limits = append(s.limits, made)
	}
	c.subjects[key] = s
	return nil
}

func (c *checker) makeLimit(key subjectKey, l *limitLine) (*limit, error) {
	span, whole, timeout := l.WindowMS, int64(1000), int64(0)
	switch l.Kind {
	case "bucket":
		span, whole = l.RefillPeriodMS, 1
	case "concurrency":
		span, timeout = l.TimeoutMS, l.TimeoutMS
	}
	wrong := l.Kind != "budget" && (span <= 0 || span > maxSpanMS || span%whole != 0) ||
		l.Kind == "bucket" && l.RefillAmount <= 0
	if wrong || l.Capacity == nil || *l.Capacity < 0 {
		return nil, fmt.Errorf("capacity or span missing or out of range")
	}
	made := &limit{
		subject: key, name: l.Name, kind: l.Kind, capacity: *l.Capacity, shadow: l.Shadow,
		timeout: timeout,
	}
	switch l.Kind {
	case "bucket":
		made.meter = newBucket(made.capacity, l.RefillAmount, l.RefillPeriodMS)
	case "window", "concurrency":
		made.meter = &occupancy{capacity: made.capacity, length: span}
	case "budget":
		cal, err := c.calendar(l.Every, l.Zone)
		made.meter = &budget{calendar: cal, capacity: made.capacity, used: map[int64]*big.Int{}}
		return made, err
	default:
		return nil, fmt.Errorf("unknown kind %q", l.Kind)
	}
	return made, nil
}
