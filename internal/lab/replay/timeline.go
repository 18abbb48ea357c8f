package replay

import (
	"math"
	"slices"

	"github.com/weir-limiter/weir"
)

const (
	// A timeline has at most maxIntervals intervals, and at least half as many unless a replay is
	// shorter than that many milliseconds.
	maxIntervals = 120
	// maxTimelineRows bounds how many limits a timeline follows.
	maxTimelineRows = 40
)

// Timeline has counts over time, in equal intervals from the first call. Interval i begins at
// FromMS + i·IntervalMS.
type Timeline struct {
	FromMS     int64      `json:"from_unix_ms"`
	IntervalMS int64      `json:"interval_ms"`
	Intervals  []Interval `json:"intervals"`
	// Limits are the first rows of the report's limits; RowsLeftOut counts the others.
	Limits      []*LimitTimeline `json:"limits"`
	RowsLeftOut int              `json:"rows_left_out"`
}

// Interval has the counts of an interval.
type Interval struct {
	// Arrived are calls that arrived, and Denied those of them that were denied on arrival.
	Arrived int64 `json:"arrived"`
	Denied  int64 `json:"denied"`
	// Admitted are calls that were admitted in the interval, whenever they arrived.
	Admitted int64 `json:"admitted"`
	// Errors are attempts that were neither admitted nor denied.
	Errors int64 `json:"errors"`
	// DeniedAttempts are all denials, including those of retries.
	DeniedAttempts int64 `json:"denied_attempts"`
	// TokensAsked are the tokens of the calls that arrived, TokensAdmitted of those that were
	// admitted. They stop at the largest int64.
	TokensAsked    int64 `json:"tokens_asked"`
	TokensAdmitted int64 `json:"tokens_admitted"`
}

// LimitTimeline follows one row of the report's limits.
type LimitTimeline struct {
	Entity   string    `json:"entity,omitempty"`
	Group    Group     `json:"group,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Limit    string    `json:"limit"`
	Kind     weir.Kind `json:"kind"`
	Shadow   bool      `json:"shadow"`
	// Capacity is the sum of the capacities of the row's limits.
	Capacity int64 `json:"capacity"`
	// Denied counts the attempts in each interval that exceeded it.
	Denied []int64 `json:"denied"`
	// PeakUse is, for each interval, the most that was in use: the capacity less the least that an
	// answer said was available, summed if a row is several limits. It is -1 if no attempt asked.
	PeakUse []int64 `json:"peak_use"`

	used int64 // by the latest answer for each limit
}

// timeline fills a [Timeline]. It is a watcher.
type timeline struct {
	Timeline

	rows map[subjectLimit]*limitUse
}

// limitUse is the use of a limit by its latest answer.
type limitUse struct {
	row  *LimitTimeline
	used int64
}

// newTimeline returns a timeline for calls that come within a span. Later events make its intervals
// longer.
func newTimeline(t *callCounts, s timeRange) *timeline {
	l := &timeline{rows: map[subjectLimit]*limitUse{}}
	l.FromMS, l.IntervalMS = s.fromMS, s.ms()/maxIntervals+1
	l.Intervals, l.Limits = []Interval{}, []*LimitTimeline{} // never null in JSON
	for _, r := range limitRows(t) {
		if len(l.Limits) == maxTimelineRows {
			l.RowsLeftOut++
			continue
		}
		row := &LimitTimeline{
			Entity: r.entity, Group: r.group, Resource: r.resource, Limit: r.limit, Kind: r.kind,
			Shadow: r.shadow, Denied: []int64{}, PeakUse: []int64{},
		}
		for _, c := range r.counts {
			row.Capacity = addUp(row.Capacity, c.limit.Capacity)
			key := subjectLimit{c.subject.entity, c.subject.resource, c.limit.Name}
			l.rows[key] = &limitUse{row: row}
		}
		l.Limits = append(l.Limits, row)
	}
	return l
}

// at returns the index of the interval in which an instant lies. It adds intervals as needed.
func (l *timeline) at(atMS int64) int {
	for (atMS-l.FromMS)/l.IntervalMS >= maxIntervals {
		l.mergePairs()
	}
	i := int(max(atMS-l.FromMS, 0) / l.IntervalMS)
	l.lengthen(i + 1)
	return i
}

// lengthen adds empty intervals until there are that many.
func (l *Timeline) lengthen(intervals int) {
	for len(l.Intervals) < intervals {
		l.Intervals = append(l.Intervals, Interval{})
		for _, row := range l.Limits {
			row.Denied, row.PeakUse = append(row.Denied, 0), append(row.PeakUse, -1)
		}
	}
}

// mergePairs merges every two neighbours, which doubles the interval.
func (l *Timeline) mergePairs() {
	l.lengthen((len(l.Intervals) + 1) / 2 * 2)
	l.IntervalMS *= 2
	n := len(l.Intervals) / 2
	for i := range n {
		l.Intervals[i] = l.Intervals[2*i]
		l.Intervals[i].add(&l.Intervals[2*i+1])
		for _, row := range l.Limits {
			row.Denied[i] = row.Denied[2*i] + row.Denied[2*i+1]
			row.PeakUse[i] = max(row.PeakUse[2*i], row.PeakUse[2*i+1])
		}
	}
	l.Intervals = l.Intervals[:n]
	for _, row := range l.Limits {
		row.Denied, row.PeakUse = row.Denied[:n], row.PeakUse[:n]
	}
}

func (n *Interval) add(other *Interval) {
	n.Arrived += other.Arrived
	n.Denied += other.Denied
	n.Admitted += other.Admitted
	n.Errors += other.Errors
	n.DeniedAttempts += other.DeniedAttempts
	n.TokensAsked = addUp(n.TokensAsked, other.TokensAsked)
	n.TokensAdmitted = addUp(n.TokensAdmitted, other.TokensAdmitted)
}

// Reserved counts an attempt.
func (l *timeline) Reserved(a *Attempt, v *Decision) error {
	i := l.at(a.AtMS)
	n := &l.Intervals[i]
	tokens := a.Call.Tokens()
	if a.Number == 1 {
		n.Arrived++
		n.TokensAsked = addUp(n.TokensAsked, tokens)
	}
	switch {
	case v.Err != nil:
		n.Errors++
	case v.Denied != nil:
		n.DeniedAttempts++
		if a.Number == 1 {
			n.Denied++
		}
	default:
		n.Admitted++
		n.TokensAdmitted = addUp(n.TokensAdmitted, tokens)
	}
	for k := range v.Limits {
		s := &v.Limits[k]
		use := l.rows[subjectLimit{s.Entity, s.Resource, s.Limit}]
		if use == nil {
			continue
		}
		if s.Exceeded {
			use.row.Denied[i]++
		}
		used := max(addUp(s.Capacity, -max(s.Available, -math.MaxInt64)), 0)
		use.row.used = addUp(use.row.used, used-use.used)
		use.used = used
		use.row.PeakUse[i] = max(use.row.PeakUse[i], use.row.used)
	}
	return nil
}

// AlignTimelines returns copies of the timelines of two runs of one workload that have equal
// intervals and the same number of them, so that they can be drawn on one axis.
func AlignTimelines(a, b *Timeline) (first, second *Timeline) {
	step := max(a.IntervalMS, b.IntervalMS)
	first, second = a.widen(step), b.widen(step)
	n := max(len(first.Intervals), len(second.Intervals))
	first.lengthen(n)
	second.lengthen(n)
	return first, second
}

// widen returns a copy whose intervals have at least that length. Intervals grow by doubling, and
// those of one workload began with the same length.
func (l *Timeline) widen(stepMS int64) *Timeline {
	wide := new(*l)
	wide.Intervals, wide.Limits = slices.Clone(l.Intervals), make([]*LimitTimeline, len(l.Limits))
	for i, row := range l.Limits {
		wide.Limits[i] = new(*row)
		wide.Limits[i].Denied = slices.Clone(row.Denied)
		wide.Limits[i].PeakUse = slices.Clone(row.PeakUse)
	}
	for wide.IntervalMS < stepMS {
		wide.mergePairs()
	}
	return wide
}
