// Package loadtest makes calls to a [weir.Service] and measures how it answers.
//
// A call reserves, waits for its think time, and settles. In a closed loop each caller makes one
// call after the other, so a slow service gets fewer calls. In an open loop calls begin at planned
// times, whatever happens to earlier ones, and latency counts from those times: if a service stalls
// for a second, every call that was due in that second waits in the report, not only the one that
// was being served.
//
// A [Runner] asks the service about the mix of requests, makes the calls in goroutines, and settles
// every lease at the end. One generator makes all calls from one stream of random numbers, so that
// the seed determines them. A lock guards the counts, from which Run makes the [Report].
package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// Bounds of the options.
const (
	maxDuration    = 24 * time.Hour
	maxConcurrency = 4096
	maxRate        = 1_000_000
	// maxThink is less than the life of a lease, so that the lease can be settled.
	maxThink = time.Hour - time.Millisecond
	// maxThinking bounds the calls of an open loop that hold a lease at one time.
	maxThinking = 100_000
)

// The defaults of the options.
const (
	DefaultDuration    = 30 * time.Second
	DefaultConcurrency = 10
)

// LateBy is the delay up to which a call is not counted as late.
const LateBy = 20 * time.Millisecond

// Options configures a [Runner]. A nil *Options means all defaults.
type Options struct {
	// Duration is the time for which calls are begun and measured. Default: 30 seconds.
	Duration time.Duration
	// Warmup is the time for which calls are made before that, unmeasured. Default: none.
	Warmup time.Duration
	// Concurrency is the number of callers of a closed loop. In an open loop it bounds the requests
	// that wait for an answer, not counting calls that think. Default: 10.
	Concurrency int
	// Rate is the number of calls that begin per second, which makes it an open loop. Default: 0, a
	// closed loop.
	Rate int64
	// Think is the time between a reservation's answer and its settlement. Default: none.
	Think DurationRange
	// CancelPercent is the number of leases in a hundred that are cancelled instead of completed.
	// Default: 0.
	CancelPercent int
	// Seed determines what the calls ask for: the same seed, the same calls in the same order.
	// Default: 0.
	Seed uint64
}

// withDefaults returns the options with defaults filled in, or all mistakes in them.
func (o *Options) withDefaults() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Duration == 0 {
		out.Duration = DefaultDuration
	}
	if out.Concurrency == 0 {
		out.Concurrency = DefaultConcurrency
	}
	o = &out
	var errs []error
	refuse := func(wrong bool, field string, value any, format string, args ...any) {
		if wrong {
			errs = append(errs, invalid(field, value, fmt.Sprintf(format, args...)))
		}
	}
	refuse(o.Duration < time.Millisecond || o.Duration > maxDuration, "duration", o.Duration,
		"must be from 1ms to 24h")
	refuse(o.Warmup < 0 || o.Warmup > maxDuration, "warmup", o.Warmup, "must be from 0s to 24h")
	refuse(o.Concurrency < 1 || o.Concurrency > maxConcurrency, "concurrency", o.Concurrency,
		"must be from 1 to %d", maxConcurrency)
	refuse(o.Rate < 0 || o.Rate > maxRate, "rate", o.Rate, "must be from 1 to %d", maxRate)
	refuse(o.CancelPercent < 0 || o.CancelPercent > 100, "cancel", o.CancelPercent,
		"must be from 0 to 100")
	switch t := o.Think; {
	case t.Least < 0 || t.Most > maxThink:
		refuse(true, "think", t, "must be from 0s to less than an hour: a lease lives no longer")
	case t.Least > t.Most:
		refuse(true, "think", t, "must not end before it begins")
	case o.Rate > 0 && o.Rate <= maxRate:
		most := maxThinking * int64(time.Second) / o.Rate
		keeps := min(t.Most, max(o.Warmup, 0)+o.Duration) // no lease is kept beyond the end
		refuse(int64(keeps) > most, "think", t,
			"would have more than %d calls thinking at one time, at %d a second", maxThinking, o.Rate)
	}
	return out, errors.Join(errs...)
}

// Runner puts a load on a service. It runs once; Progress may be called meanwhile.
type Runner struct {
	service weir.Service
	mix     []Template
	options Options
	record  *resultCounts

	mu    sync.Mutex
	start time.Time // zero before the first call
}

// New makes a runner, or returns every mistake in the arguments, joined. Each is a [weir.Error]
// with code [weir.Invalid], whose field is the option's name in lower case. New calls no service.
func New(s weir.Service, mix []Template, o *Options) (*Runner, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(mix) == 0 || len(mix) > maxTemplates {
		return nil, invalid("mix", len(mix), fmt.Sprintf("must have from 1 to %d requests", maxTemplates))
	}
	for i := range mix {
		if mix[i].Weight < 1 || mix[i].Weight > maxWeight {
			return nil, invalid("weight", mix[i].Weight, fmt.Sprintf("must be from 1 to %d", maxWeight))
		}
	}
	return &Runner{service: s, mix: mix, options: options, record: newRecord()}, nil
}

// Run makes the calls and returns the report. It first asks the service about the mix. Mistakes in
// the mix (an unknown limit, a cost that can never fit, a caller without permission) are returned
// at once, without a report. From then on every error comes with a report. A run ends early when
// ctx ends, and after a hundred errors in a row; it then settles the live leases at once.
func (r *Runner) Run(ctx context.Context) (*Report, error) {
	templates, err := prepareTemplates(ctx, r.service, r.mix)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	o := &r.options
	l := &loop{Runner: r, calls: newGenerator(templates, o), start: time.Now()}
	r.record.from = l.start.Add(o.Warmup)
	r.record.to = r.record.from.Add(o.Duration)
	r.record.giveUp = stop
	r.mu.Lock()
	r.start = l.start
	r.mu.Unlock()

	stopped := min(l.run(ctx), o.Warmup+o.Duration)
	report := r.record.report()
	report.Options = r.options
	report.Elapsed = max(stopped-o.Warmup, 0)
	report.Served = max(report.Served, report.Elapsed)
	report.Planned = report.Started
	if o.Rate > 0 {
		report.Planned = max(instantsBefore(stopped, o.Rate)-instantsBefore(o.Warmup, o.Rate), 0)
		report.Unsent = max(report.Planned-report.Started, 0)
	}
	report.Stopped = context.Cause(ctx)
	return report, r.record.failure(report.Stopped)
}

// Progress is the progress of a run.
type Progress struct {
	// Elapsed counts from the first call, of Total; both include the warm-up.
	Elapsed, Total time.Duration
	// Calls counts those that have begun; the others count those that have ended.
	Calls, Admitted, Denied, Failed int64
}

// Progress returns the progress of the run at now.
func (r *Runner) Progress(now time.Time) Progress {
	p := Progress{Total: r.options.Warmup + r.options.Duration}
	r.mu.Lock()
	start := r.start
	r.mu.Unlock()
	if !start.IsZero() {
		p.Elapsed = max(now.Sub(start), 0)
	}
	c := r.record
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Calls, p.Admitted, p.Denied, p.Failed = c.calls, c.admitted, c.denied, c.failed
	return p
}

// Report is the result of a run. It covers the requests that were due between the end of the
// warm-up and the end of the run.
type Report struct {
	// Options has the options of the run, with defaults filled in.
	Options Options
	// Elapsed is the measured time. It is less than the duration if the run was stopped.
	Elapsed time.Duration
	// Served is the time until the last answer to a request that was due in the measured time, and
	// at least Elapsed. Rates of answers are relative to it.
	Served time.Duration
	// Rows have the requests by verb and result, without those that did not occur.
	Rows []Row
	// DeniedBy are the limits that denied, the most frequent first.
	DeniedBy []DeniedCount
	// Errors are the requests that failed, by verb and code.
	Errors []ErrorCount
	// Planned calls were due. Started calls began, in an open loop up to ten seconds after the end.
	// Unsent calls did not. In a closed loop all calls that begin are planned.
	Planned, Started, Unsent int64
	// Late calls began more than [LateBy] after they were due; LateMax is the longest delay.
	Late    int64
	LateMax time.Duration
	// Degraded leases were granted without asking the store.
	Degraded int64
	// Taken and Settled are the leases of the whole run and those that are known to have ended. Left
	// may still be live, including leases whose reservation got no answer.
	Taken, Settled, Left int64
	// Stopped is the reason that the run ended early, or nil.
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

// DeniedBy names a limit of the entity that asked, or of a parent.
type DeniedBy struct {
	Resource string    `json:"resource,omitempty"`
	Limit    string    `json:"limit,omitempty"`
	Kind     weir.Kind `json:"kind,omitempty"`
	Parent   bool      `json:"parent"`
	// Contended reports whether the store lost to other writers. The other fields are empty then.
	Contended bool `json:"contended,omitempty"`
}

// DeniedCount is the number of requests that a limit has denied. A request that exceeds several
// limits counts on each.
type DeniedCount struct {
	DeniedBy

	Count int64 `json:"denied"`
}

// ErrorCount is the number of requests that failed in one way.
type ErrorCount struct {
	Verb  Verb      `json:"verb"`
	Code  weir.Code `json:"code"`
	Count int64     `json:"count"`
}

// Count returns the number of requests of a verb with a result.
func (r *Report) Count(v Verb, result Result) int64 {
	for i := range r.Rows {
		if r.Rows[i].Verb == v && r.Rows[i].Result == result {
			return r.Rows[i].Count
		}
	}
	return 0
}

// Verb is the kind of a request.
type Verb string

// The verbs.
const (
	Reserve  Verb = "reserve"
	Complete Verb = "complete"
	Cancel   Verb = "cancel"
)

// Result is the result of a request.
type Result string

// The results. A denial is an answer; failed is an error, or no answer.
const (
	Admitted Result = "admitted"
	Denied   Result = "denied"
	Done     Result = "done"
	Failed   Result = "failed"
)
