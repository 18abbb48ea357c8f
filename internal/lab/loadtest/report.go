package loadtest

import (
	"time"

	"github.com/weir-limiter/weir"
)

// Report is what a run has measured: the requests that were due between the end of the warm-up and
// the end of the run.
type Report struct {
	// Options are those of the run, with defaults filled in.
	Options Options
	// Elapsed is how long was measured; less than the duration where the run was stopped.
	Elapsed time.Duration
	// Served is how long it took to the last answer to what was due in that time; at least that time
	// itself. Rates of answers count over it.
	Served time.Duration
	// Rows have the requests by verb and result; those that never came are left out.
	Rows []Row
	// DeniedBy are the limits that denied, the most frequent first.
	DeniedBy []DeniedCount
	// Errors are the requests that failed, by verb and code.
	Errors []ErrorCount
	// Planned calls were due; Started ones began, in an open loop perhaps up to ten seconds after
	// the end. Unsent ones did not. In a closed loop whatever begins is planned.
	Planned, Started, Unsent int64
	// Late calls began more than [LateBy] after they were due, LateMax is by how much at most.
	Late    int64
	LateMax time.Duration
	// Degraded leases were granted without asking the store.
	Degraded int64
	// Taken and Settled are the leases of the whole run, and how many were settled or are known to
	// have ended; Left is how many may be live still, including leases whose reservation got no
	// answer.
	Taken, Settled, Left int64
	// Stopped is why the run ended early; nil if it did not.
	Stopped error
}

// Row is one verb with one result.
type Row struct {
	Verb   Verb
	Result Result
	Count  int64
	// Latency counts from when the request was due, Service from when it was sent. In a closed loop
	// they are the same.
	Latency, Service Quantiles
}

// DeniedBy names a limit, without whose it was: that of the entity which asked, or of a parent.
type DeniedBy struct {
	Resource string    `json:"resource,omitempty"`
	Limit    string    `json:"limit,omitempty"`
	Kind     weir.Kind `json:"kind,omitempty"`
	Parent   bool      `json:"parent"`
	// Contended is true for denials in which the store lost to other writers; the rest is empty.
	Contended bool `json:"contended,omitempty"`
}

// DeniedCount is how many requests a limit has denied. A request that exceeds several counts on
// each.
type DeniedCount struct {
	DeniedBy

	Count int64 `json:"denied"`
}

// ErrorCount is how many requests failed in one way.
type ErrorCount struct {
	Verb  Verb      `json:"verb"`
	Code  weir.Code `json:"code"`
	Count int64     `json:"count"`
}

// Count is how many requests of a verb had a result.
func (r *Report) Count(v Verb, result Result) int64 {
	for i := range r.Rows {
		if r.Rows[i].Verb == v && r.Rows[i].Result == result {
			return r.Rows[i].Count
		}
	}
	return 0
}

// Verb is what was asked.
type Verb string

// The verbs.
const (
	Reserve  Verb = "reserve"
	Complete Verb = "complete"
	Cancel   Verb = "cancel"
)

// Result is what became of a request.
type Result string

// The results. A denial is an answer; failed is what got none, or an error.
const (
	Admitted Result = "admitted"
	Denied   Result = "denied"
	Done     Result = "done"
	Failed   Result = "failed"
)

// kind is a row of the report.
type kind struct {
	verb   Verb
	result Result
}

// LateBy is how much later than planned a call may begin without being counted.
const LateBy = 20 * time.Millisecond
