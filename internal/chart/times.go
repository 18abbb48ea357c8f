package chart

import (
	"math"
	"time"

	"github.com/weir-limiter/weir/internal/text"
)

// Times are equal intervals, one after the other.
type Times struct {
	// Start is the time at which the first interval begins; labels are in its time zone. If it is
	// zero, labels count from 0.
	Start time.Time
	// Step is the length of an interval. Default: a second
	Step time.Duration
	// Months is the length of an interval in calendar months, instead of Step. Start is then the
	// beginning of a month. Default: 0, so that Step counts
	Months int
}

const day = 24 * time.Hour

// tick is a label on an axis.
type tick struct {
	// at is in ten-thousandths of the axis.
	at    int
	label string
}

// normal fills in the default, and bounds the interval so that n of them do not overflow.
func (t Times) normal(n int) Times {
	const century = 1200
	t.Months = min(max(t.Months, 0), century)
	if t.Step <= 0 {
		t.Step = time.Second
	}
	t.Step = min(t.Step, math.MaxInt64/time.Duration(4*(n+1)))
	return t
}

// each returns t with n intervals merged into one.
func (t Times) each(n int) Times {
	t.Step *= time.Duration(n)
	t.Months *= n
	return t
}

// relative reports whether the labels count from 0.
func (t Times) relative() bool { return t.Start.IsZero() && t.Months == 0 }

// month returns the beginning of an interval of months.
func (t Times) month(i int) time.Time { return t.Start.AddDate(0, i*t.Months, 0) }

// step returns the length of an interval in words.
func (t Times) step() string {
	switch {
	case t.Months == 1:
		return "month"
	case t.Months > 1:
		return text.FormatInt(int64(t.Months)) + " months"
	case t.Step == day:
		return "day"
	case t.Step == time.Hour:
		return "hour"
	}
	if t.Step < time.Millisecond {
		return t.Step.String()
	}
	return duration(t.Step.Milliseconds())
}

// label names one of n intervals by the time at which it begins.
func (t Times) label(i, n int) string {
	if t.Months > 0 {
		return t.month(i).Format("Jan 2006")
	}
	after := time.Duration(i) * t.Step
	if t.relative() {
		return duration(after.Milliseconds())
	}
	layout := "15:04"
	switch {
	case t.wholeDays():
		return t.Start.Add(after).Format("Jan 2")
	case t.Step%time.Second != 0 || t.Start.Nanosecond() != 0:
		layout = "15:04:05.000"
		if t.Step >= time.Second {
			layout = "15:04:05"
		}
	case t.Step%time.Minute != 0 || t.Start.Second() != 0:
		layout = "15:04:05"
	}
	if n > 0 && !sameDay(t.Start, t.Start.Add(time.Duration(n)*t.Step-1)) {
		layout = "Jan 2 " + layout
	}
	return t.Start.Add(after).Format(layout)
}

// wholeDays reports whether all intervals begin at midnight.
func (t Times) wholeDays() bool {
	hour, minute, second := t.Start.Clock()
	return t.Step%day == 0 && hour+minute+second+t.Start.Nanosecond() == 0
}

// span returns the times at which n intervals begin and end, in words.
func (t Times) span(n int) string {
	if t.Months > 0 {
		return t.label(0, n) + " to " + t.label(max(n-1, 0), n)
	}
	end := time.Duration(n) * t.Step
	if t.relative() {
		return duration(end.Milliseconds())
	}
	last := t.Start.Add(end)
	layout := "15:04:05"
	if !sameDay(t.Start, last) {
		layout = "2006-01-02 15:04:05"
	}
	return t.Start.Format("2006-01-02 15:04:05") + " to " + last.Format(layout+" MST")
}

func sameDay(a, b time.Time) bool {
	return a.YearDay() == b.YearDay() && a.Year() == b.Year()
}

// ticks returns at most limit round times within n intervals, or the first time if none is round.
func (t Times) ticks(n, limit int) []tick {
	whole := time.Duration(n) * t.Step
	if whole <= 0 || limit < 1 {
		return nil
	}
	if t.Months > 0 {
		return t.monthTicks(n, limit)
	}
	apart := roundStep(whole, limit)
	if t.wholeDays() {
		apart = max(apart, day)
	}
	first := time.Duration(0)
	if !t.relative() {
		first = untilRound(t.Start, apart)
	}
	var out []tick
	for at := first; at < whole && len(out) < limit; at += apart {
		out = append(out, tick{scale(uint64(at), uint64(whole), 10_000), t.tickLabel(at, apart)})
	}
	if out == nil {
		out = []tick{{0, t.tickLabel(0, apart)}}
	}
	return out
}

// monthTicks returns at most limit of n intervals. The first one and each January have the year.
func (t Times) monthTicks(n, limit int) []tick {
	var out []tick
	for i := 0; i < n; i += mergeCount(n, limit) {
		layout := "Jan"
		if i == 0 || t.month(i).Month() == time.January {
			layout = "Jan 2006"
		}
		out = append(out, tick{scale(uint64(i), uint64(n), 10_000), t.month(i).Format(layout)})
	}
	return out
}

// tickLabel writes a time with the precision that the distance to the next requires.
func (t Times) tickLabel(at, apart time.Duration) string {
	if t.relative() {
		if at == 0 {
			return "0"
		}
		return duration(at.Milliseconds())
	}
	when := t.Start.Add(at)
	midnight := when.Hour() == 0 && when.Minute() == 0 && when.Second() == 0
	switch {
	case apart >= day, midnight && at > 0 && apart >= time.Hour:
		return when.Format("Jan 2")
	case apart >= time.Minute:
		return when.Format("15:04")
	case apart >= time.Second:
		return when.Format("15:04:05")
	}
	return when.Format("05.000")
}

// roundStep returns the smallest round duration of which at most limit multiples lie within a time.
func roundStep(whole time.Duration, limit int) time.Duration {
	const ms = time.Millisecond
	for _, step := range []time.Duration{
		ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
		30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour,
		12 * time.Hour, day, 2 * day, 7 * day,
	} {
		if fits(whole, step, limit) {
			return step
		}
	}
	step := 14 * day
	for !fits(whole, step, limit) && step < math.MaxInt64/4 {
		step *= 2
	}
	return step
}

// fits reports whether at most limit multiples of a step lie within a time.
func fits(whole, step time.Duration, limit int) bool { return (whole-1)/step < time.Duration(limit) }

// untilRound returns the time until the next multiple of a duration in local time.
func untilRound(start time.Time, apart time.Duration) time.Duration {
	_, offset := start.Zone()
	// Time.Truncate counts from the year 1, which began on a Monday at midnight.
	wall := start.Add(time.Duration(offset) * time.Second)
	if past := wall.Sub(wall.Truncate(apart)); past > 0 {
		return apart - past
	}
	return 0
}
