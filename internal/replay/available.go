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

// spanned is a span that counts the periods of each calendar once: very many limits may share one.
type spanned struct {
	span

	periodsOf map[calendar]int64
}

type calendar struct{ every, zone string }

func newSpanned(s span) *spanned { return &spanned{s, map[calendar]int64{}} }

// counted is how many calendar periods of a budget the span touches.
func (s *spanned) counted(l *weir.Limit) int64 {
	key := calendar{l.Every, l.Zone}
	n, known := s.periodsOf[key]
	if !known {
		n = s.periods(l)
		s.periodsOf[key] = n
	}
	return n
}

// available is how much of a limit could have been used within the span: a bucket's capacity and
// what it regains, a window's capacity as often as a window begins, one after the other, a budget's
// capacity in each period touched, and a concurrency limit's slots all the time, in
// slot-milliseconds.
func (s *spanned) available(l *weir.Limit) *big.Int {
	n := big.NewInt(l.Capacity)
	switch l.Kind {
	case weir.Window:
		return n.Mul(n, big.NewInt(s.ms()/l.Window.Milliseconds()+1))
	case weir.Concurrency:
		return n.Mul(n, big.NewInt(s.ms()))
	case weir.Budget:
		return n.Mul(n, big.NewInt(s.counted(l)))
	}
	refill := big.NewInt(l.RefillAmount)
	refill.Mul(refill, big.NewInt(s.ms()))
	refill.Quo(refill, big.NewInt(l.RefillPeriod.Milliseconds()))
	return n.Add(n, refill)
}

// periods counts the calendar periods of a budget that the span touches. It may span thousands of
// years by a slip of the trace, so hours and days are counted one by one only where clocks change.
func (s span) periods(l *weir.Limit) int64 {
	n := int64(0)
	to := time.UnixMilli(s.toMS)
	for at, _ := l.Period(time.UnixMilli(s.fromMS)); !at.After(to); {
		even, lengthMS := evenPeriods(l, at, to)
		n += even + 1
		_, at = l.Period(time.UnixMilli(at.UnixMilli() + even*lengthMS))
	}
	return n
}

// evenPeriods is how many periods of one length begin at an instant, one after the other, before
// the clock changes and before the last that is wanted. A period begins at that instant.
func evenPeriods(l *weir.Limit, at, to time.Time) (n, lengthMS int64) {
	sinceMidnight := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute +
		time.Duration(at.Second())*time.Second
	length := map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}[l.Every]
	if length == 0 || sinceMidnight%length != 0 {
		return 0, 0
	}
	if _, change := at.ZoneBounds(); !change.IsZero() && change.Before(to) {
		to = change
	}
	lengthMS = length.Milliseconds()
	return max(to.UnixMilli()-at.UnixMilli()-1, 0) / lengthMS, lengthMS
}
