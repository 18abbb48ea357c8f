package replay

import (
	"encoding/json"
	"math/big"

	"github.com/weir-limiter/weir/internal/lab/trace"
)

// Report says what became of recorded calls.
type Report struct {
	Trace  string `json:"trace"`
	Calls  int    `json:"calls"`
	From   string `json:"from"`
	To     string `json:"to"`
	SpanMS int64  `json:"span_ms"`
	// Entities is how many the calls were spread over, or how many the trace names.
	Entities int `json:"entities"`
	// EntityColumn is the trace's column for who called; empty where the calls were spread.
	EntityColumn string `json:"entity_column,omitempty"`
	Seed         uint64 `json:"seed"`
	// Resource is what all calls used; empty where they used several.
	Resource  string `json:"resource,omitempty"`
	Resources int    `json:"resources"`
	// LimitsFile is where the limits came from. The caller fills it in.
	LimitsFile string `json:"limits_file,omitempty"`
	// Latency is how long the calls lasted, or the trace's column that says it.
	Latency  string            `json:"latency"`
	Costs    map[string]string `json:"costs"`
	Estimate string            `json:"estimate"`
	Limits   []*LimitReport    `json:"limits"`
	Totals   Totals            `json:"totals"`
	// Estimates is absent where calls reserved what they used.
	Estimates *EstimateReport `json:"estimates,omitempty"`
	// Retry is absent where denied calls did not come back.
	Retry    *RetryReport `json:"retry,omitempty"`
	Timeline *Timeline    `json:"timeline"`
	// Live is about a replay against a server; absent in virtual time.
	Live *LiveReport `json:"live,omitempty"`
	// Speed is the only part that differs between two runs of one command in virtual time.
	Speed Speed `json:"speed"`
}

// Totals is about calls as wholes. A call that came back counts once, by what became of it in the
// end. Retry-afters are those of every denied attempt, and absent without any.
type Totals struct {
	Calls           int64       `json:"calls"`
	Admitted        int64       `json:"admitted"`
	Denied          int64       `json:"denied"`
	Errors          int64       `json:"errors"`
	AdmittedPercent json.Number `json:"admitted_percent"`
	DeniedPercent   json.Number `json:"denied_percent"`
	TokensAdmitted  *big.Int    `json:"tokens_admitted"`
	TokensDenied    *big.Int    `json:"tokens_denied"`
	RetryAfterP50MS *int64      `json:"retry_after_p50_ms,omitempty"`
	RetryAfterP95MS *int64      `json:"retry_after_p95_ms,omitempty"`
}

func newTotals(t *callCounts) Totals {
	c := &t.totals
	out := Totals{
		Calls: c.calls, Admitted: c.admitted, Denied: c.denied, Errors: c.faults,
		AdmittedPercent: percent(big.NewInt(c.admitted), big.NewInt(c.calls)),
		DeniedPercent:   percent(big.NewInt(c.denied), big.NewInt(c.calls)),
		TokensAdmitted:  &c.tokensAdmitted, TokensDenied: &c.tokensDenied,
	}
	if t.waits.total > 0 {
		out.RetryAfterP50MS = new(t.waits.quantile(50))
		out.RetryAfterP95MS = new(t.waits.quantile(95))
	}
	return out
}

// newReport makes the report of a replay that was counted.
func (p *boundWorkload) newReport(c *counters, s timeRange) *Report {
	r := &Report{
		Trace: p.trace.Name, Calls: len(p.calls),
		From: trace.FormatTime(s.fromMS), To: trace.FormatTime(s.toMS), SpanMS: s.ms(),
		Entities: p.spread, EntityColumn: p.trace.EntityColumn, Seed: p.seed,
		Latency: p.latency.String(), Costs: map[string]string{}, Estimate: c.how.String(),
		Limits: limitReports(c.tally, s), Totals: newTotals(c.tally),
		Estimates: c.estimates.report(), Timeline: c.timeline.done(),
	}
	if p.trace.DurationColumn != "" {
		r.Latency = "column " + trace.QuoteName(p.trace.DurationColumn)
	}
	entities, resources := map[string]bool{}, map[string]bool{}
	for _, by := range p.payers {
		entities[by.Entity], resources[by.Resource] = true, true
		for _, c := range by.costs {
			r.Costs[c.limit] = c.cost.String()
		}
	}
	if r.Resources = len(resources); r.Resources == 1 {
		r.Resource = p.payers[0].Resource
	}
	if p.spread == 0 {
		r.Entities = len(entities)
	}
	return r
}

// LiveReport is the part of a report that only a replay against a server has.
type LiveReport struct {
	Server string `json:"server"`
	Speed  int64  `json:"speed"`
	// Sent is how many calls were sent; fewer than the trace has where the replay was stopped.
	Sent int64 `json:"sent"`
	// Late are the calls that were sent more than 20 ms after their instant.
	Late      int64 `json:"late"`
	LateMaxMS int64 `json:"late_max_ms"`
	// Errors are the calls that got neither a lease nor a denial, by code.
	Errors map[string]int64 `json:"errors"`
	// Unsettled leases could not be completed. Degraded ones were admitted without a charge.
	Unsettled int64 `json:"unsettled"`
	Degraded  int64 `json:"degraded"`
	// Stopped is why the replay ended early; empty if it did not. The caller fills it in, and
	// Server.
	Stopped string `json:"stopped,omitempty"`
}

// counters are what every replay counts with.
type counters struct {
	how       Estimate
	tally     *callCounts
	timeline  *timeline
	estimates *estimates
	retry     *retryCount // nil where denied calls do not come back
}

// newCounters makes counters for a plan whose calls come within a span.
func newCounters(p *boundWorkload, how Estimate, s timeRange) (*counters, error) {
	e, err := newEstimates(how, len(p.payers))
	if err != nil {
		return nil, err
	}
	t := newCallCounts(p.subjects)
	return &counters{how: how, tally: t, timeline: newTimeline(t, s), estimates: e}, nil
}

// watchers are the counters, and those that are told after them.
func (c *counters) watchers(others []Watcher) []Watcher {
	all := []Watcher{c.tally, c.timeline}
	if c.estimates != nil {
		all = append(all, c.estimates)
	}
	if c.retry != nil {
		all = append(all, c.retry)
	}
	return append(all, others...)
}
