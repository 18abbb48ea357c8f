package replay

import (
	"time"
)

const (
	// DefaultPatience is how long after it came a call is tried again.
	DefaultPatience = 10 * time.Minute
	// MaxPatience bounds how long a call may be patient.
	MaxPatience = 24 * time.Hour
	// maxTries bounds how often one call asks.
	maxTries = 1_000
)

// RetryOptions make denied calls come back at the instant that they were told.
type RetryOptions struct {
	// Patience is how long after it came a call is tried again; one that was told to come later gives
	// up. Default: 10 minutes.
	Patience time.Duration
}

// returns says when a denied call comes back, in Unix milliseconds; ok is false if it gives up.
func (o *RetryOptions) returns(a *Attempt, v *Decision) (atMS int64, ok bool) {
	if o == nil || v.Denied == nil || a.Number >= maxTries {
		return 0, false
	}
	patience := o.Patience
	if patience == 0 {
		patience = DefaultPatience
	}
	// A wait that is no whole number of milliseconds is longer than that, and time must pass.
	wait := max(v.Denied.RetryAfter.Milliseconds(), 1)
	if v.Denied.RetryAfter > time.Duration(wait)*time.Millisecond {
		wait++
	}
	atMS = a.AtMS + wait
	return atMS, atMS-a.Call.AtMS <= patience.Milliseconds()
}

// RetryReport says what became of calls that come back.
type RetryReport struct {
	PatienceMS int64 `json:"patience_ms"`
	// Attempts are reservations: the first ones and those of calls that came back.
	Attempts int64 `json:"attempts"`
	// AdmittedFirst were admitted when they came, AdmittedLater when they came back, and GivenUp not
	// at all.
	AdmittedFirst int64 `json:"admitted_first"`
	AdmittedLater int64 `json:"admitted_later"`
	GivenUp       int64 `json:"given_up"`
	// WaitMS is the time from when a call came until it was admitted, over all that were: 0 for those
	// that were admitted when they came.
	WaitMS Quantiles `json:"wait_ms"`
}

// retryCount counts for a [RetryReport].
type retryCount struct {
	report RetryReport
	waits  distribution
}

// Reserved counts an attempt.
func (r *retryCount) Reserved(a *Attempt, v *Decision) error {
	c := &r.report
	c.Attempts++
	switch {
	case v.Admitted():
		r.waits.add(a.AtMS - a.Call.AtMS)
		if a.Number == 1 {
			c.AdmittedFirst++
		} else {
			c.AdmittedLater++
		}
	case v.Denied != nil && !v.Retries:
		c.GivenUp++
	}
	return nil
}

// Completed has nothing to count.
func (*retryCount) Completed(*Attempt) error { return nil }

func (r *retryCount) done(o *RetryOptions) *RetryReport {
	out := r.report
	out.PatienceMS = o.Patience.Milliseconds()
	if o.Patience == 0 {
		out.PatienceMS = DefaultPatience.Milliseconds()
	}
	out.WaitMS = r.waits.quantiles()
	return &out
}
