package replay

import (
	"encoding/json"
	"io"

	"github.com/weir-limiter/weir"
)

// decisionFormat is the version of the decision log, whose first line carries it.
const decisionFormat = 1

// DecisionLog is a watcher that writes a replay as lines of JSON: first the run and the limits of
// each subject, then each attempt and each completion in order, and last the time of the end.
type DecisionLog struct {
	json   *json.Encoder
	limits string
}

// NewDecisionLog makes a log for one replay against limits of that name. It makes many small writes.
func NewDecisionLog(to io.Writer, limits string) *DecisionLog {
	d := &DecisionLog{json.NewEncoder(to), limits}
	d.json.SetEscapeHTML(false)
	return d
}

func (d *DecisionLog) line(v any) error { return d.json.Encode(v) }

// begin writes what is known before the first call: the run and the limits of each subject.
func (d *DecisionLog) begin(p *boundWorkload) error {
	run := runLine{
		Kind: "run", Format: decisionFormat, Seed: p.seed, Trace: p.trace.Name, Limits: d.limits,
	}
	if err := d.line(run); err != nil {
		return err
	}
	for _, s := range p.subjects {
		l := subjectLine{
			Kind: "subject", Entity: s.entity, Resource: s.resource, Parent: s.parent,
			Limits: []limitLine{},
		}
		for i := range s.limits {
			l.Limits = append(l.Limits, newLimitLine(&s.limits[i]))
		}
		if err := d.line(l); err != nil {
			return err
		}
	}
	return nil
}

// Reserved writes an attempt.
func (d *DecisionLog) Reserved(a *Attempt, v *Decision) error {
	l := reserveLine{
		Kind: "reserve", AtMS: a.AtMS, Lease: a.Lease,
		Charges: []chargeLine{{a.Entity, a.Resource, a.Costs}},
	}
	switch {
	case v.Err != nil:
		l.Error = string(v.Err.Code)
	case v.Denied != nil:
		l.Allowed = new(false)
		l.RetryAfterMS = new(v.Denied.RetryAfter.Milliseconds())
	default:
		l.Allowed = new(true)
	}
	for i := range v.Limits {
		s := &v.Limits[i]
		l.Limits = append(l.Limits, statusLine{
			Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: string(s.Kind),
			Capacity: s.Capacity, Available: s.Available, Requested: s.Requested,
			Exceeded: s.Exceeded, Shadow: s.Shadow, RetryAfterMS: s.RetryAfter.Milliseconds(),
		})
	}
	return d.line(l)
}

// Completed writes a completion.
func (d *DecisionLog) Completed(a *Attempt) error {
	return d.line(completeLine{"complete", a.EndMS, a.Lease, []weir.Costs{a.Actuals}})
}

// The lines of a decision log, in the order in which their fields are written.
type (
	runLine struct {
		Kind   string `json:"kind"`
		Format int    `json:"format"`
		Seed   uint64 `json:"seed"`
		Trace  string `json:"trace"`
		Limits string `json:"limits"`
	}
	subjectLine struct {
		Kind     string      `json:"kind"`
		Entity   string      `json:"entity"`
		Resource string      `json:"resource"`
		Parent   string      `json:"parent,omitempty"`
		Limits   []limitLine `json:"limits"`
	}
	limitLine struct {
		Name           string `json:"name"`
		Kind           string `json:"kind"`
		Capacity       int64  `json:"capacity"`
		RefillAmount   int64  `json:"refill_amount,omitempty"`
		RefillPeriodMS int64  `json:"refill_period_ms,omitempty"`
		WindowMS       int64  `json:"window_ms,omitempty"`
		TimeoutMS      int64  `json:"timeout_ms,omitempty"`
		Every          string `json:"every,omitempty"`
		Zone           string `json:"zone,omitempty"`
		Shadow         bool   `json:"shadow,omitempty"`
	}
	reserveLine struct {
		Kind         string       `json:"kind"`
		AtMS         int64        `json:"at_ms"`
		Lease        weir.LeaseID `json:"lease"`
		Charges      []chargeLine `json:"charges"`
		Allowed      *bool        `json:"allowed,omitempty"`
		RetryAfterMS *int64       `json:"retry_after_ms,omitempty"`
		Error        string       `json:"error,omitempty"`
		Limits       []statusLine `json:"limits,omitempty"`
	}
	chargeLine struct {
		Entity   string     `json:"entity"`
		Resource string     `json:"resource"`
		Costs    weir.Costs `json:"costs"`
	}
	statusLine struct {
		Entity       string `json:"entity"`
		Resource     string `json:"resource"`
		Limit        string `json:"limit"`
		Kind         string `json:"kind"`
		Capacity     int64  `json:"capacity"`
		Available    int64  `json:"available"`
		Requested    int64  `json:"requested"`
		Exceeded     bool   `json:"exceeded"`
		Shadow       bool   `json:"shadow"`
		RetryAfterMS int64  `json:"retry_after_ms"`
	}
	completeLine struct {
		Kind    string       `json:"kind"`
		AtMS    int64        `json:"at_ms"`
		Lease   weir.LeaseID `json:"lease"`
		Actuals []weir.Costs `json:"actuals"`
	}
	endLine struct {
		Kind string `json:"kind"`
		AtMS int64  `json:"at_ms"`
	}
)

func newLimitLine(l *weir.Limit) limitLine {
	return limitLine{
		Name: l.Name, Kind: string(l.Kind), Capacity: l.Capacity,
		RefillAmount: l.RefillAmount, RefillPeriodMS: l.RefillPeriod.Milliseconds(),
		WindowMS: l.Window.Milliseconds(), TimeoutMS: l.Timeout.Milliseconds(),
		Every: l.Every, Zone: l.Zone, Shadow: l.Shadow,
	}
}
