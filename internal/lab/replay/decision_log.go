package replay

import (
	"encoding/json"
	"io"

	"github.com/weir-limiter/weir"
)

// decisionFormat is the version of the decision log, which its first line contains.
const decisionFormat = 1

// DecisionLog is a watcher that writes a replay as lines of JSON: first the run and the limits of
// each subject, then each attempt and each completion in order, and last the time of the end.
type DecisionLog struct {
	json   *json.Encoder
	limits string
}

// NewDecisionLog makes a log for one replay against limits of that name. It makes many small
// writes.
func NewDecisionLog(to io.Writer, limits string) *DecisionLog {
	d := &DecisionLog{json.NewEncoder(to), limits}
	d.json.SetEscapeHTML(false)
	return d
}

// begin writes what is known before the first call: the run and the limits of each subject.
func (d *DecisionLog) begin(p *boundWorkload) error {
	if err := d.json.Encode(struct {
		Kind   string `json:"kind"`
		Format int    `json:"format"`
		Seed   uint64 `json:"seed"`
		Trace  string `json:"trace"`
		Limits string `json:"limits"`
	}{"run", decisionFormat, p.seed, p.trace.Name, d.limits}); err != nil {
		return err
	}
	for _, s := range p.subjects {
		limits := []limitLine{}
		for i := range s.limits {
			l := &s.limits[i]
			limits = append(limits, limitLine{
				Name: l.Name, Kind: l.Kind, Capacity: l.Capacity,
				RefillAmount: l.RefillAmount, RefillPeriodMS: l.RefillPeriod.Milliseconds(),
				WindowMS: l.Window.Milliseconds(), TimeoutMS: l.Timeout.Milliseconds(),
				Every: l.Every, Zone: l.Zone, Shadow: l.Shadow,
			})
		}
		if err := d.json.Encode(struct {
			Kind     string      `json:"kind"`
			Entity   string      `json:"entity"`
			Resource string      `json:"resource"`
			Parent   string      `json:"parent,omitempty"`
			Limits   []limitLine `json:"limits"`
		}{"subject", s.entity, s.resource, s.parent, limits}); err != nil {
			return err
		}
	}
	return nil
}

type limitLine struct {
	Name           string    `json:"name"`
	Kind           weir.Kind `json:"kind"`
	Capacity       int64     `json:"capacity"`
	RefillAmount   int64     `json:"refill_amount,omitempty"`
	RefillPeriodMS int64     `json:"refill_period_ms,omitempty"`
	WindowMS       int64     `json:"window_ms,omitempty"`
	TimeoutMS      int64     `json:"timeout_ms,omitempty"`
	Every          string    `json:"every,omitempty"`
	Zone           string    `json:"zone,omitempty"`
	Shadow         bool      `json:"shadow,omitempty"`
}

// reserveLine is an attempt. Allowed and RetryAfterMS are absent if it ended in an error.
type reserveLine struct {
	Kind         string       `json:"kind"`
	AtMS         int64        `json:"at_ms"`
	Lease        weir.LeaseID `json:"lease"`
	Charges      []chargeLine `json:"charges"`
	Allowed      *bool        `json:"allowed,omitempty"`
	RetryAfterMS *int64       `json:"retry_after_ms,omitempty"`
	Error        weir.Code    `json:"error,omitempty"`
	Limits       []statusLine `json:"limits,omitempty"`
}

type chargeLine struct {
	Entity   string     `json:"entity"`
	Resource string     `json:"resource"`
	Costs    weir.Costs `json:"costs"`
}

type statusLine struct {
	Entity       string    `json:"entity"`
	Resource     string    `json:"resource"`
	Limit        string    `json:"limit"`
	Kind         weir.Kind `json:"kind"`
	Capacity     int64     `json:"capacity"`
	Available    int64     `json:"available"`
	Requested    int64     `json:"requested"`
	Exceeded     bool      `json:"exceeded"`
	Shadow       bool      `json:"shadow"`
	RetryAfterMS int64     `json:"retry_after_ms"`
	// RetryLikelyMS is 0 unless slots denied the attempt that are likely to return earlier.
	RetryLikelyMS int64 `json:"retry_likely_ms,omitempty"`
}

// Reserved writes an attempt.
func (d *DecisionLog) Reserved(a *Attempt, v *Decision) error {
	l := reserveLine{
		Kind: "reserve", AtMS: a.AtMS, Lease: a.Lease,
		Charges: []chargeLine{{a.Entity, a.Resource, a.Costs}},
	}
	switch {
	case v.Err != nil:
		l.Error = v.Err.Code
	case v.Denied != nil:
		l.Allowed, l.RetryAfterMS = new(false), new(v.Denied.RetryAfter.Milliseconds())
	default:
		l.Allowed = new(true)
	}
	for i := range v.Limits {
		s := &v.Limits[i]
		l.Limits = append(l.Limits, statusLine{
			s.Entity, s.Resource, s.Limit, s.Kind, s.Capacity, s.Available, s.Requested,
			s.Exceeded, s.Shadow, s.RetryAfter.Milliseconds(), s.RetryLikely.Milliseconds(),
		})
	}
	return d.json.Encode(l)
}

// Completed writes a completion.
func (d *DecisionLog) Completed(a *Attempt) error {
	return d.json.Encode(struct {
		Kind    string       `json:"kind"`
		AtMS    int64        `json:"at_ms"`
		Lease   weir.LeaseID `json:"lease"`
		Actuals []weir.Costs `json:"actuals"`
	}{"complete", a.EndMS, a.Lease, []weir.Costs{a.Actuals}})
}

// end writes the last line.
func (d *DecisionLog) end(atMS int64) error {
	return d.json.Encode(struct {
		Kind string `json:"kind"`
		AtMS int64  `json:"at_ms"`
	}{"end", atMS})
}
