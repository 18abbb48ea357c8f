package load

import (
	"context"
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
	record  *recorder

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
	templates, err := ready(ctx, r.service, r.mix)
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
	return report, r.record.judge(report.Stopped)
}

// judge returns why a run failed: it was stopped, or nothing was answered.
func (r *recorder) judge(stopped error) error {
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
