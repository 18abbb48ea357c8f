// Package loadtest makes calls to a [weir.Service] and measures how it answers.
//
// A call reserves, thinks, and settles. In a closed loop each caller makes one call after the
// other, so a slow service is asked less. In an open loop calls begin at planned instants, whatever
// became of those before, and latencies count from those instants: if a service stands still for a
// second, every call that came within the second is seen to wait, not only the one that was being
// served.
package loadtest

import (
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
