package replay

import (
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
)

// liveCount counts what only a replay in real time has.
type liveCount struct {
	// sent and answered are calls; a denial is an answer, an error is none.
	sent, answered int64
	// operations are requests that have ended: reservations and completions.
	operations int64
	// late calls were sent more than LateBy after their instant; lateMax is the longest delay.
	late    int64
	lateMax time.Duration
	// errors are reservations that got neither a lease nor a denial, by code.
	errors map[weir.Code]int64
	// unsettled leases could not be completed; degraded ones were never charged.
	unsettled, degraded int64
	// last is the latest error of a request; nil without any.
	last error
}

// report is the part of a report that only a replay in real time has.
func (c *liveCount) report(speed int64) *LiveReport {
	r := &LiveReport{
		Speed: speed, Sent: c.sent, Late: c.late, LateMaxMS: c.lateMax.Milliseconds(),
		Errors: map[string]int64{}, Unsettled: c.unsettled, Degraded: c.degraded,
	}
	for code, n := range c.errors {
		r.Errors[string(code)] = n
	}
	return r
}

// judge returns an error where there were calls and no answers.
func (c *liveCount) judge() error {
	if c.answered == 0 && c.last != nil {
		return fmt.Errorf("no call was answered: %w", c.last)
	}
	return nil
}
