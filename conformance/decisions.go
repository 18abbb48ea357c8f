package conformance

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// Decisions counts what [CheckDecisions] compared.
type Decisions struct {
	// Admitted, Denied and Errors are the numbers of reservations with each result.
	Admitted, Denied, Errors int
	// Settled is the number of leases that were completed or cancelled.
	Settled int
	// Judged is the number of statuses of limits, by kind.
	Judged map[weir.Kind]int
}

// CheckDecisions reads a decision log, as `weir replay --decisions` writes it, makes every call in
// it on the model, and compares the answers: what is admitted, denied or refused, every number of
// every limit, and every retry-after. The log may also have lines about adjust, cancel and extend
// calls, which a replay does not make. The options are those of the limiter that wrote the log. It
// returns an error at the first line that the model would have written differently, and if the log
// is malformed or truncated.
func CheckDecisions(log io.Reader, o limiter.Options) (*Decisions, error) {
	const longest = 16 << 20 // in bytes: far more than a request with all its limits takes
	c := &decisionChecker{
		options: o, found: Decisions{Judged: map[weir.Kind]int{}},
		defined: weir.Definitions{Entities: map[string]weir.EntityDefinition{}},
	}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, longest)
	n := 0
	for lines.Scan() {
		n++
		if err := c.line(n == 1, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", n, err)
	}
	if !c.ended {
		return nil, fmt.Errorf("after line %d: truncated: no end line", n)
	}
	return &c.found, nil
}

// decisionChecker makes the calls of a decision log on the model.
type decisionChecker struct {
	options limiter.Options
	defined weir.Definitions
	model   *ModelWorld // nil before the first call
	ended   bool
	found   Decisions
}

// decisionLine is a line about a call: the request, then the answer.
type decisionLine struct {
	Kind    string           `json:"kind"`
	AtMS    int64            `json:"at_ms"`
	Lease   weir.LeaseID     `json:"lease,omitzero"`
	Charges []decisionCharge `json:"charges,omitempty"`
	Seq     int64            `json:"seq,omitempty"`
	Totals  []weir.Costs     `json:"totals,omitempty"`
	Actuals []weir.Costs     `json:"actuals,omitempty"`
	decisionAnswer
}

// decisionCharge is a charge of a reservation.
type decisionCharge struct {
	Entity   string     `json:"entity"`
	Resource string     `json:"resource"`
	Costs    weir.Costs `json:"costs"`
}

// decisionAnswer is the answer to a call. Allowed is set for a reservation that was judged.
type decisionAnswer struct {
	Allowed      *bool            `json:"allowed,omitempty"`
	RetryAfterMS int64            `json:"retry_after_ms,omitempty"`
	Error        weir.Code        `json:"error,omitempty"`
	Limits       []decisionStatus `json:"limits,omitempty"`
}

// decisionStatus is the status of a limit in an answer.
type decisionStatus struct {
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
	// RetryLikelyMS is an estimate, so it is only checked to be possible (4.4).
	RetryLikelyMS int64 `json:"retry_likely_ms,omitempty"`
}

// decisionSubject is a line about the limits of an entity on a resource.
type decisionSubject struct {
	Kind     string          `json:"kind"`
	Entity   string          `json:"entity"`
	Resource string          `json:"resource"`
	Parent   string          `json:"parent"`
	Limits   []decisionLimit `json:"limits"`
}

// decisionLimit defines a limit.
type decisionLimit struct {
	Name           string    `json:"name"`
	Kind           weir.Kind `json:"kind"`
	Capacity       int64     `json:"capacity"`
	RefillAmount   int64     `json:"refill_amount"`
	RefillPeriodMS int64     `json:"refill_period_ms"`
	WindowMS       int64     `json:"window_ms"`
	TimeoutMS      int64     `json:"timeout_ms"`
	Every          string    `json:"every"`
	Zone           string    `json:"zone"`
	Shadow         bool      `json:"shadow"`
}

// line reads a line, and compares it with the model if it is about a call.
func (c *decisionChecker) line(first bool, text []byte) error {
	var head struct {
		Kind   string `json:"kind"`
		Format int    `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	switch {
	case c.ended:
		return errors.New("comes after the end")
	case first != (head.Kind == "run"):
		return errors.New("the first line, and no other, is about the run")
	case first && head.Format != 1:
		return fmt.Errorf("the format is %d, not 1", head.Format)
	case first:
		return nil
	case head.Kind == "subject":
		return c.define(text)
	}
	var l decisionLine
	if err := readStrictly(text, &l); err != nil {
		return err
	}
	if l.AtMS <= 0 {
		return errors.New("has no at_ms")
	}
	if err := c.reach(time.UnixMilli(l.AtMS)); err != nil {
		return err
	}
	if l.Kind == "end" {
		c.ended = true
		return nil
	}
	want := l
	var err error
	if want.decisionAnswer, err = c.play(&l); err != nil {
		return err
	}
	want.takeLikely(&l)
	if !reflect.DeepEqual(l, want) {
		return fmt.Errorf("the log says\n%s\nthe model says\n%s", text, want.text())
	}
	c.count(&l)
	return nil
}

// takeLikely takes over from the log when slots are likely to return, if that is possible, and the
// retry-after of the whole call that follows (4.4).
func (a *decisionAnswer) takeLikely(log *decisionLine) {
	if a.Allowed == nil || *a.Allowed || len(a.Limits) != len(log.Limits) {
		return
	}
	a.RetryAfterMS = 0
	for i := range a.Limits {
		s, likely := &a.Limits[i], log.Limits[i].RetryLikelyMS
		if !s.Exceeded || s.Shadow {
			continue
		}
		if s.Kind == weir.Concurrency && 0 < likely && likely <= s.RetryAfterMS {
			s.RetryLikelyMS = likely
		}
		a.RetryAfterMS = max(a.RetryAfterMS, cmp.Or(s.RetryLikelyMS, s.RetryAfterMS))
	}
}

// readStrictly decodes a line. Fields that v does not have are an error.
func readStrictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("has more than one value")
	}
	return nil
}

func (l *decisionLine) text() []byte {
	text, err := json.Marshal(l)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// define adds the limits of a subject to the definitions.
func (c *decisionChecker) define(text []byte) error {
	var s decisionSubject
	if err := readStrictly(text, &s); err != nil {
		return err
	}
	e, known := c.defined.Entities[s.Entity]
	switch {
	case c.model != nil:
		return errors.New("defines a subject after the first call")
	case e.Limits[s.Resource] != nil || known && e.Parent != s.Parent:
		return fmt.Errorf("defines %s/%s twice, or with two parents", s.Entity, s.Resource)
	case !known:
		e = weir.EntityDefinition{
			Parent: s.Parent, Cascade: s.Parent != "", Limits: map[string][]weir.Limit{},
		}
	}
	limits := []weir.Limit{}
	for _, l := range s.Limits {
		limits = append(limits, weir.Limit{
			Name: l.Name, Kind: l.Kind, Capacity: l.Capacity, RefillAmount: l.RefillAmount,
			RefillPeriod: milliseconds(l.RefillPeriodMS), Window: milliseconds(l.WindowMS),
			Timeout: milliseconds(l.TimeoutMS), Every: l.Every, Zone: l.Zone, Shadow: l.Shadow,
		})
	}
	e.Limits[s.Resource] = limits
	c.defined.Entities[s.Entity] = e
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// reach moves the model's clock to the instant of a call. The first call opens the model.
func (c *decisionChecker) reach(at time.Time) error {
	if c.model == nil {
		m, err := OpenModel(Setup{Start: at, Definitions: &c.defined, Options: c.options}, nil, nil)
		c.model = &m
		return err
	}
	by := at.Sub(c.model.Now())
	if by < 0 {
		return fmt.Errorf("is %v before the line above", -by)
	}
	c.model.Advance(by)
	return nil
}

// play makes the call of a line on the model. It returns an error if there is no such call.
func (c *decisionChecker) play(l *decisionLine) (a decisionAnswer, err error) {
	ctx := context.Background()
	switch l.Kind {
	case opReserve:
		var lease *weir.Lease
		if lease, err = c.model.Reserve(ctx, l.request()); err == nil {
			a.Allowed, a.Limits = new(true), decisionStatuses(lease.Limits)
		}
	case opAdjust:
		_, err = c.model.Adjust(ctx, l.Lease, l.Seq, l.Totals)
	case opComplete:
		_, err = c.model.Complete(ctx, l.Lease, l.Actuals)
	case opCancel:
		_, err = c.model.Cancel(ctx, l.Lease)
	case opExtend:
		_, err = c.model.Extend(ctx, l.Lease)
	default:
		return a, fmt.Errorf("the kind is %q", l.Kind)
	}
	if denied, ok := deniedBy(err); ok {
		a.Allowed, a.RetryAfterMS = new(false), denied.RetryAfter.Milliseconds()
		a.Limits = decisionStatuses(denied.Limits)
	} else if e, ok := errors.AsType[*weir.Error](err); ok {
		a.Error = e.Code
	}
	return a, nil
}

func (l *decisionLine) request() *weir.Request {
	r := &weir.Request{LeaseID: l.Lease}
	for _, o := range l.Charges {
		r.Charges = append(r.Charges, weir.Charge{Entity: o.Entity, Resource: o.Resource, Costs: o.Costs})
	}
	return r
}

func decisionStatuses(of []weir.LimitStatus) []decisionStatus {
	var out []decisionStatus
	for _, s := range of {
		out = append(out, decisionStatus{
			Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Kind: s.Kind, Capacity: s.Capacity,
			Available: s.Available, Requested: s.Requested, Exceeded: s.Exceeded, Shadow: s.Shadow,
			RetryAfterMS: s.RetryAfter.Milliseconds(),
		})
	}
	return out
}

// count counts a line that is right.
func (c *decisionChecker) count(l *decisionLine) {
	settles := l.Kind == opComplete || l.Kind == opCancel
	switch {
	case l.Kind == opReserve && l.Error != "":
		c.found.Errors++
	case l.Kind == opReserve && *l.Allowed:
		c.found.Admitted++
	case l.Kind == opReserve:
		c.found.Denied++
	case settles && l.Error == "":
		c.found.Settled++
	}
	for _, s := range l.Limits {
		c.found.Judged[s.Kind]++
	}
}
