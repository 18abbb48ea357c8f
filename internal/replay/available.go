package replay

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// span is the time of a replay: from the first call to the end of the last, in Unix milliseconds.
type span struct {
	fromMS, toMS int64
}

func (s span) ms() int64 { return s.toMS - s.fromMS }

// available is how much of a limit could have been used within the span: a bucket's capacity and
// what it regains, a window's capacity as often as a window begins, one after the other, a budget's
// capacity in each period touched, and a concurrency limit's slots all the time, in
// slot-milliseconds.
func (s span) available(l *weir.Limit) *big.Int {
	n := big.NewInt(l.Capacity)
	switch l.Kind {
	case weir.Window:
		return n.Mul(n, big.NewInt(s.ms()/l.Window.Milliseconds()+1))
	case weir.Concurrency:
		return n.Mul(n, big.NewInt(s.ms()))
	case weir.Budget:
		return n.Mul(n, big.NewInt(s.periods(l)))
	}
	refill := big.NewInt(l.RefillAmount)
	refill.Mul(refill, big.NewInt(s.ms()))
	refill.Quo(refill, big.NewInt(l.RefillPeriod.Milliseconds()))
	return n.Add(n, refill)
}

// periods counts the calendar periods of a budget that the span touches.
func (s span) periods(l *weir.Limit) int64 {
	n := int64(0)
	for at, to := time.UnixMilli(s.fromMS), time.UnixMilli(s.toMS); !at.After(to); n++ {
		_, at = l.Period(at)
	}
	return n
}
