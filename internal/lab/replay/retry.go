package replay

import (
	"math/bits"
	"math/rand/v2"
	"time"
)

const (
	// DefaultPatience is the time after its first arrival for which a call is retried.
	DefaultPatience = 10 * time.Minute
	// MaxPatience bounds the patience of a call.
	MaxPatience = 24 * time.Hour
	// maxLaterMS bounds how much later than told a call comes back.
	maxLaterMS = 10_000
	// maxTries bounds the attempts of one call.
	maxTries = 1_000
)

// RetryOptions make denied calls come back after the retry-after that they were given, and up to an
// eighth but at most ten seconds later: each takes the next 64 bits x from PCG with the state
// (seed, 3), and comes ⌊x · (min(wait / 8, 10 000) + 1) / 2⁶⁴⌋ ms later.
type RetryOptions struct {
	// Patience is the time after its arrival for which a call is retried. A call that would have to
	// come back later gives up. Default: 10 minutes.
	Patience time.Duration
}

func (o *RetryOptions) patienceMS() int64 {
	if o.Patience == 0 {
		return DefaultPatience.Milliseconds()
	}
	return o.Patience.Milliseconds()
}

// returns reports whether and when a denied call comes back, in Unix milliseconds.
func (o *RetryOptions) returns(a *Attempt, v *Decision, random rand.Source) (atMS int64, ok bool) {
	if o == nil || v.Denied == nil || a.Number >= maxTries {
		return 0, false
	}
	// Round up to whole milliseconds, and to at least one so that time passes.
	wait := max(v.Denied.RetryAfter.Milliseconds(), 1)
	if v.Denied.RetryAfter > time.Duration(wait)*time.Millisecond {
		wait++
	}
	later, _ := bits.Mul64(random.Uint64(), uint64(min(wait/8, maxLaterMS)+1))
	atMS = a.AtMS + wait + int64(later)
	return atMS, atMS-a.Call.AtMS <= o.patienceMS()
}

// RetryReport has the results of calls that were retried.
type RetryReport struct {
	PatienceMS int64 `json:"patience_ms"`
	// Attempts counts all reservations, including retries.
	Attempts int64 `json:"attempts"`
	// AdmittedFirst were admitted on arrival, AdmittedLater after a retry, and GivenUp never.
	AdmittedFirst int64 `json:"admitted_first"`
	AdmittedLater int64 `json:"admitted_later"`
	GivenUp       int64 `json:"given_up"`
	// WaitMS is the time from arrival to admission, over all admitted calls.
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

// done returns the report, or nil if nothing was retried.
func (r *retryCount) done() *RetryReport {
	if r == nil {
		return nil
	}
	out := r.report
	out.WaitMS = r.waits.quantiles()
	return &out
}
