package cli

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
	// late calls were sent more than lateBy after their instant; lateMax is the longest delay.
	late    int64
	lateMax time.Duration
	// errors are reservations that got neither a lease nor a denial, by code.
	errors map[weir.Code]int64
	// unsettled leases could not be completed; degraded ones were never charged.
	unsettled, degraded int64
	// last is the latest error of a request; nil without any.
	last error
}

// judge returns an error where there were calls and no answers.
func (c *liveCount) judge() error {
	if c.answered == 0 && c.last != nil {
		return fmt.Errorf("no call was answered: %w", c.last)
	}
	return nil
}
