// Package loadtest makes calls to a [weir.Service] and measures how it answers.
//
// A call reserves, thinks, and settles. In a closed loop each caller makes one call after the
// other, so a slow service is asked less. In an open loop calls begin at planned instants, whatever
// became of those before, and latencies count from those instants: if a service stands still for a
// second, every call that came within the second is seen to wait, not only the one that was being
// served.
package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

const (
	// drainTime is how long after its end an open loop goes on to send what was due before.
	drainTime = 10 * time.Second
	// settleTime is how long what is under way gets to end once nothing more is sent.
	settleTime = 10 * time.Second
)

// Runner is one load on a service. It is run once; Progress may be called meanwhile.
type Runner struct {
	service weir.Service
	mix     []Template
	options Options
	record  *resultCounts

	mu    sync.Mutex
	start time.Time // zero before the first call
}

// New makes a runner, or returns every mistake in the arguments, joined; each is a [weir.Error]
// with code [weir.Invalid], whose field is the option's name in lower case. It asks nothing yet.
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
	return &Runner{service: s, mix: mix, options: options, record: newRecorder()}, nil
}

// Run makes the calls and returns what it measured. What the service says of the mix beforehand (an
// unknown limit, a cost that can never fit, a caller it does not let in) is returned at once,
// without a report. Otherwise there is a report beside every error: a run ends early when ctx does,
// and after a hundred errors in a row. What is under way then is settled at once.
func (r *Runner) Run(ctx context.Context) (*Report, error) {
	templates, err := prepareTemplates(ctx, r.service, r.mix)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	start := time.Now()
	r.record.from = start.Add(r.options.Warmup)
	r.record.to = r.record.from.Add(r.options.Duration)
	r.record.giveUp = stop
	r.mu.Lock()
	r.start = start
	r.mu.Unlock()

	l := &loop{
		Runner: r, calls: newGenerator(templates, &r.options), start: start,
	}
	stopped := l.run(ctx)
	report := r.record.report()
	report.Options = r.options
	report.Elapsed = max(min(stopped, r.options.Warmup+r.options.Duration)-r.options.Warmup, 0)
	report.Served = max(report.Served, report.Elapsed)
	report.Planned, report.Unsent = report.Started, 0
	if r.options.Rate > 0 {
		report.Planned = l.planned(stopped)
		report.Unsent = max(report.Planned-report.Started, 0)
	}
	report.Stopped = context.Cause(ctx)
	return report, r.record.failure(report.Stopped)
}

// failure returns why a run failed: it was stopped, or nothing was answered.
func (r *resultCounts) failure(stopped error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stopped == nil && r.answers == 0 && r.last != nil {
		return fmt.Errorf("no request was answered: %w", r.last)
	}
	return stopped
}

// Progress is how far a run is.
type Progress struct {
	// Elapsed counts from the first call, of Total; both with the warm-up.
	Elapsed, Total time.Duration
	// Calls have begun; of those, the others have ended.
	Calls, Admitted, Denied, Failed int64
}

// Progress says how far the run is at now.
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

// Bounds of the options.
const (
	maxDuration    = 24 * time.Hour
	maxConcurrency = 4096
	maxRate        = 1_000_000
	// maxThink is less than a lease lives, so that it can be settled.
	maxThink = time.Hour - time.Millisecond
	// maxThinking bounds the calls of an open loop that hold a lease at one time.
	maxThinking = 100_000
)

// The defaults of the options.
const (
	DefaultDuration    = 30 * time.Second
	DefaultConcurrency = 10
)

// DurationRange is a stretch of time from which one duration is drawn, evenly.
type DurationRange struct {
	Least, Most time.Duration
}

// Options tune a [Runner]. Nil means all defaults.
type Options struct {
	// Duration is how long calls are begun and measured. Default: 30 seconds.
	Duration time.Duration
	// Warmup is how long calls are made before that, unmeasured. Default: none.
	Warmup time.Duration
	// Concurrency is how many callers a closed loop has; how many requests an open loop has under
	// way at one time, not counting calls that think. Default: 10.
	Concurrency int
	// Rate is how many calls a second begin, which makes it an open loop. Default: 0, a closed loop.
	Rate int64
	// Think is the time between a reservation's answer and its settlement. Default: none.
	Think DurationRange
	// CancelPercent is how many of a hundred leases are cancelled instead of completed. Default: 0.
	CancelPercent int
	// Seed decides what the calls ask: the same seed, the same calls in the same order. Default: 0.
	Seed uint64
}

// withDefaults fills the options in, or says all that is wrong with them.
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
	return out, out.check()
}

func (o *Options) check() error {
	var errs []error
	refuse := func(wrong bool, field string, value any, reason string) {
		if wrong {
			errs = append(errs, invalid(field, value, reason))
		}
	}
	refuse(o.Duration < time.Millisecond || o.Duration > maxDuration, "duration", o.Duration,
		"must be from 1ms to 24h")
	refuse(o.Warmup < 0 || o.Warmup > maxDuration, "warmup", o.Warmup, "must be from 0s to 24h")
	refuse(o.Concurrency < 1 || o.Concurrency > maxConcurrency, "concurrency", o.Concurrency,
		fmt.Sprintf("must be from 1 to %d", maxConcurrency))
	refuse(o.Rate < 0 || o.Rate > maxRate, "rate", o.Rate, fmt.Sprintf("must be from 1 to %d", maxRate))
	refuse(o.CancelPercent < 0 || o.CancelPercent > 100, "cancel", o.CancelPercent,
		"must be from 0 to 100")
	switch t := o.Think; {
	case t.Least < 0 || t.Most > maxThink:
		refuse(true, "think", t, "must be from 0s to less than an hour: a lease lives no longer")
	case t.Least > t.Most:
		refuse(true, "think", t, "must not end before it begins")
	case o.Rate > 0 && o.Rate <= maxRate:
		most := maxThinking * int64(time.Second) / o.Rate
		keeps := min(t.Most, max(o.Warmup, 0)+o.Duration) // none is kept beyond the end
		refuse(int64(keeps) > most, "think", t, fmt.Sprintf(
			"would have more than %d calls thinking at one time, at %d a second", maxThinking, o.Rate))
	}
	return errors.Join(errs...)
}

// String returns the span as [ParseSpan] reads it.
func (s DurationRange) String() string {
	if s.Least == s.Most {
		return s.Least.String()
	}
	return s.Least.String() + ".." + s.Most.String()
}

func invalid(field string, value any, reason string) *weir.Error {
	return &weir.Error{Code: weir.Invalid, Field: field, Value: shorten(fmt.Sprint(value)), Reason: reason}
}
