package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the longest latency that a histogram tells from longer ones. The longest of all is
// kept beside it.
const longest = time.Minute

// latencies counts durations to three digits.
type latencies struct {
	histogram *hdrhistogram.Histogram
	max       time.Duration
}

// Quantiles say within which time so many of a hundred were done, to three digits, rounded up.
type Quantiles struct {
	P50, P90, P95, P99, P999, Max time.Duration
}

func (l *latencies) add(d time.Duration) {
	if l.histogram == nil {
		l.histogram = hdrhistogram.New(1, int64(longest), 3)
	}
	d = max(d, 0) // clocks may jump
	l.max = max(l.max, d)
	if err := l.histogram.RecordValue(int64(min(d, longest))); err != nil {
		panic("load: " + err.Error()) // only for a value outside of the bounds above
	}
}

func (l *latencies) quantiles() Quantiles {
	if l.histogram == nil {
		return Quantiles{}
	}
	at := func(percent float64) time.Duration {
		d := time.Duration(l.histogram.ValueAtPercentile(percent))
		if d >= longest {
			return l.max // more is not known
		}
		return min(d, l.max)
	}
	return Quantiles{at(50), at(90), at(95), at(99), at(99.9), l.max}
}
