package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Reservation is a request that a test of a store plans itself, without a limiter. The plan is the
// one that a limiter would make, but the only requests it refuses are those that no store may be
// given.
type Reservation struct {
	// ID, Fingerprint, Lifetime, Memory and MemorySize are as in a [driver.Plan].
	ID          weir.LeaseID
	Fingerprint uint64
	Lifetime    time.Duration
	Memory      time.Duration
	MemorySize  int
	// Charges are in the request's order.
	Charges []weir.Charge
	// Brought are limits of the request, which may only lower those that apply.
	Brought []weir.Limit
	// Config returns the configuration of a subject.
	Config func(ctx context.Context, of weir.Subject) (*weir.Config, error)
}

// Plan returns the plan.
func (r *Reservation) Plan(ctx context.Context) (*driver.Plan, error) {
	p := &driver.Plan{
		ID: r.ID, Fingerprint: r.Fingerprint, Charges: len(r.Charges),
		Lifetime: r.Lifetime, Memory: r.Memory, MemorySize: r.MemorySize,
	}
	charged := make(map[weir.Subject][]int)
	for i, c := range r.Charges {
		var names []string
		of := weir.Subject{Entity: c.Entity, Resource: c.Resource}
		for of.Entity != "" {
			j, err := r.judge(ctx, p, of)
			if err != nil {
				return nil, err
			}
			charged[of] = append(charged[of], i)
			for k := range j.Limits {
				names = append(names, j.Limits[k].Name)
			}
			of.Entity = j.Parent
		}
		for name := range c.Costs {
			if !slices.Contains(names, name) {
				return nil, &weir.Error{Code: weir.UnknownLimit, Field: "costs." + name}
			}
		}
	}
	for _, j := range p.Subjects {
		for k := range j.Limits {
			t := &driver.Take{Subject: j.Subject, Limit: &j.Limits[k], Level: j.Level}
			if t.Ceiling = j.Limits[k].Capacity; len(r.Brought) > 0 {
				t.Ceiling = r.ceiling(&j.Limits[k])
			}
			for _, i := range charged[j.Subject] {
				if units, ok := r.Charges[i].Costs[t.Limit.Name]; ok {
					t.Parts = append(t.Parts, driver.Part{Charge: i, Units: units})
				}
			}
			if len(t.Parts) == 0 && t.Limit.Kind == weir.Concurrency {
				t.Parts = []driver.Part{{Charge: charged[j.Subject][0], Units: 1}}
			}
			if len(t.Parts) == 0 {
				continue
			}
			if !t.Limit.Shadow && overflows(t.Parts, t.Ceiling) {
				return nil, &weir.Error{Code: weir.NeverSatisfiable, Field: "costs." + t.Limit.Name}
			}
			p.Lifetime = max(p.Lifetime, t.Limit.Timeout)
			p.Takes = append(p.Takes, t)
		}
	}
	return p, nil
}

// judge returns the limits that apply to a subject, and adds them to the plan.
func (r *Reservation) judge(ctx context.Context, p *driver.Plan, of weir.Subject) (*driver.Judged, error) {
	for i := range p.Subjects {
		if p.Subjects[i].Subject == of {
			return &p.Subjects[i], nil
		}
	}
	j, err := judge(ctx, of, r.Config)
	if err != nil {
		return nil, err
	}
	p.Subjects = append(p.Subjects, j)
	return &p.Subjects[len(p.Subjects)-1], nil
}

// judge returns the limits that apply to a subject by its configuration.
func judge(
	ctx context.Context, of weir.Subject,
	config func(ctx context.Context, of weir.Subject) (*weir.Config, error),
) (driver.Judged, error) {
	c, err := config(ctx, of)
	if err != nil {
		return driver.Judged{}, err
	}
	j := driver.Judged{Subject: of, Version: c.Version}
	if len(c.Levels) > 0 {
		j.Level, j.Limits = c.Levels[0].Level, c.Levels[0].Limits
	}
	if c.Cascade {
		j.Parent = c.Parent
	}
	return j, nil
}

// ceiling returns the limit's capacity, or the lower one that was brought.
func (r *Reservation) ceiling(l *weir.Limit) int64 {
	for i := range r.Brought {
		if r.Brought[i].Name == l.Name {
			return min(l.Capacity, r.Brought[i].Capacity)
		}
	}
	return l.Capacity
}

// overflows reports whether parts sum to more than a limit can ever hold.
func overflows(parts []driver.Part, most int64) bool {
	for _, p := range parts {
		if p.Units > most {
			return true
		}
		most -= p.Units
	}
	return false
}
