package replay

import (
	"encoding/json"
	"math/big"

	"github.com/weir-limiter/weir/internal/lab/trace"
)

// Report is the result of playing a workload: the results of its calls, and the workload itself.
type Report struct {
	Trace  string `json:"trace"`
	Calls  int    `json:"calls"`
	From   string `json:"from"`
	To     string `json:"to"`
	SpanMS int64  `json:"span_ms"`
	// Entities is the number of entities over which the calls were spread, or which the trace
	// names.
	Entities int `json:"entities"`
	// EntityColumn is the trace's column for the entity; empty if the calls were spread.
	EntityColumn string `json:"entity_column,omitempty"`
	Seed         uint64 `json:"seed"`
	// Resource is the resource of all calls; empty if they have several.
	Resource  string `json:"resource,omitempty"`
	Resources int    `json:"resources"`
	// LimitsFile names the origin of the limits. The caller fills it in.
	LimitsFile string `json:"limits_file,omitempty"`
	// Latency is the flag for the duration of calls, or the trace's column for it.
	Latency  string            `json:"latency"`
	Costs    map[string]string `json:"costs"`
	Estimate string            `json:"estimate"`
	Limits   []*LimitReport    `json:"limits"`
	Totals   Totals            `json:"totals"`
	// Estimates is absent if calls reserved what they used.
	Estimates *EstimateReport `json:"estimates,omitempty"`
	// Retry is absent if denied calls did not come back.
	Retry    *RetryReport `json:"retry,omitempty"`
	Timeline *Timeline    `json:"timeline"`
	// Live is about a run against a server; absent in virtual time.
	Live *LiveReport `json:"live,omitempty"`
	// Speed is the only part that differs between two runs in virtual time.
	Speed Speed `json:"speed"`
}

// Totals counts calls. A call that was retried counts once, by its last attempt. The retry-afters
// are those of all denied attempts, and absent if there were none.
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

// newReport makes the report of a workload that was played in the given time.
func (p *boundWorkload) newReport(c *counters, e *estimates, s timeRange) *Report {
	r := &Report{
		Trace: p.trace.Name, Calls: len(p.calls),
		From: trace.FormatTime(s.fromMS), To: trace.FormatTime(s.toMS), SpanMS: s.ms(),
		Entities: p.spread, EntityColumn: p.trace.EntityColumn, Seed: p.seed,
		Latency: p.latency.String(), Costs: map[string]string{},
		Limits: limitReports(c.tally, s), Totals: c.tally.done(),
		Estimates: e.report(), Retry: c.retry.done(), Timeline: &c.timeline.Timeline,
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

// LiveReport is the part of a report that only a run against a server has.
type LiveReport struct {
	Server string `json:"server"`
	Speed  int64  `json:"speed"`
	// Sent counts the calls that were sent; fewer than the trace has if the run was stopped.
	Sent int64 `json:"sent"`
	// Late counts the calls that were sent more than 20 ms too late.
	Late      int64 `json:"late"`
	LateMaxMS int64 `json:"late_max_ms"`
	// Errors counts the calls that got neither a lease nor a denial, by code.
	Errors map[string]int64 `json:"errors"`
	// Unsettled leases could not be completed. Degraded ones were admitted without a charge.
	Unsettled int64 `json:"unsettled"`
	Degraded  int64 `json:"degraded"`
	// Stopped is the reason that the run ended early, or empty. The caller fills in Stopped and
	// Server.
	Stopped string `json:"stopped,omitempty"`
}

// counters are the watchers of every run.
type counters struct {
	tally    *callCounts
	timeline *timeline
	retry    *retryCount // nil if denied calls do not come back
}

// newCounters makes counters for a workload whose calls arrive in the given time.
func newCounters(p *boundWorkload, s timeRange, retry *RetryOptions) *counters {
	c := &counters{tally: newCallCounts(p.subjects)}
	c.timeline = newTimeline(c.tally, s)
	if retry != nil {
		c.retry = &retryCount{report: RetryReport{PatienceMS: retry.patienceMS()}}
	}
	return c
}

func (c *counters) watchers() []Watcher {
	if c.retry == nil {
		return []Watcher{c.tally, c.timeline}
	}
	return []Watcher{c.tally, c.timeline, c.retry}
}
