package weir

import (
	"time"

	"github.com/weir-limiter/weir/kernel"
)

// Refill is the balance in milli-units at the instant to of a bucket that had one at from, both in Unix
// milliseconds: never above the capacity, and never moved back by an earlier to. It is how every store
// must count (docs/semantics.md, 2.1).
func (l *Limit) Refill(balanceMilli, from, to int64) int64 {
	return l.rate().Refill(balanceMilli, from, to)
}

// RefillWait is the time from now, at which the balance was refilled, until it has reached want
// milli-units if nobody takes any; at most MaxInt64 nanoseconds, as for a want above the capacity.
func (l *Limit) RefillWait(balanceMilli, want, now int64) time.Duration {
	return kernel.Duration(l.rate().Wait(balanceMilli, want, now))
}

func (l *Limit) rate() kernel.Rate {
	return kernel.RateOf(l.Capacity, l.RefillAmount, l.RefillPeriod)
}
