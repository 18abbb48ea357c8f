package replay

import "slices"

// AlignTimelines returns the timelines of two replays of one workload with as many intervals, each
// as long, so that they can be drawn on one axis. It changes neither.
func AlignTimelines(a, b *Timeline) (first, second *Timeline) {
	step := max(a.IntervalMS, b.IntervalMS)
	wideA, wideB := a.widen(step), b.widen(step)
	n := max(len(wideA.Intervals), len(wideB.Intervals))
	wideA.lengthen(n)
	wideB.lengthen(n)
	return wideA.done(), wideB.done()
}

// widen returns a copy whose intervals are at least so long. They grow by doubling, and those of
// one workload began alike.
func (l *Timeline) widen(stepMS int64) *timeline {
	wide := &timeline{Timeline: *l}
	wide.Intervals, wide.Limits = slices.Clone(l.Intervals), make([]*LimitTimeline, len(l.Limits))
	for i, row := range l.Limits {
		wide.Limits[i] = new(*row)
		wide.Limits[i].Denied, wide.Limits[i].PeakUse = slices.Clone(row.Denied), slices.Clone(row.PeakUse)
	}
	for wide.IntervalMS < stepMS {
		wide.halve()
	}
	return wide
}
