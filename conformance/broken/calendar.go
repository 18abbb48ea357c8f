package broken

import (
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// calendarRules break line 2.4.
func calendarRules() []rule {
	period := func(f func(r *model.Rules, l *weir.Limit, now int64) (start, end int64)) func(w, r *model.Rules) {
		return func(w, r *model.Rules) {
			w.Period = func(l *weir.Limit, now int64) (int64, int64) { return f(r, l, now) }
		}
	}
	const hour, day = int64(time.Hour / time.Millisecond), int64(24 * time.Hour / time.Millisecond)
	fixed := func(now, offset, length int64) (int64, int64) {
		start := (now-offset)/length*length + offset
		return start, start + length
	}
	return []rule{
		{
			"budgets are in UTC",
			"2.4",
			period(func(r *model.Rules, l *weir.Limit, now int64) (int64, int64) {
				c := *l
				c.Zone = "UTC"
				return r.Period(&c, now)
			}),
		},
		{
			"a day has 24 hours",
			"2.4",
			period(func(r *model.Rules, l *weir.Limit, now int64) (int64, int64) {
				start, end := r.Period(l, now)
				if l.Every == "day" {
					end = start + day
				}
				return start, end
			}),
		},
		{
			"a week begins on Sunday",
			"2.4",
			period(func(r *model.Rules, l *weir.Limit, now int64) (int64, int64) {
				if l.Every == "week" {
					return fixed(now, 3*day, 7*day) // the first Sunday was 1970-01-04
				}
				return r.Period(l, now)
			}),
		},
		{
			"a month has 30 days",
			"2.4",
			period(func(r *model.Rules, l *weir.Limit, now int64) (int64, int64) {
				start, end := r.Period(l, now)
				if l.Every == "month" {
					end = start + 30*day
				}
				return start, end
			}),
		},
		{
			"hours are those of UTC",
			"2.4",
			period(func(r *model.Rules, l *weir.Limit, now int64) (int64, int64) {
				if l.Every == "hour" {
					return fixed(now, 0, hour)
				}
				return r.Period(l, now)
			}),
		},
		{"a repeated hour counts once", "2.4", period(onceAnHour)},
		{"a day begins with the first midnight shown", "2.4", period(byMidnight)},
		{"a budget rolls", "2.4", period(func(_ *model.Rules, _ *weir.Limit, now int64) (int64, int64) {
			return now, now + day
		})},
	}
}

// onceAnHour lets an hour last for as long as the wall clock shows its name.
func onceAnHour(r *model.Rules, l *weir.Limit, now int64) (start, end int64) {
	start, end = r.Period(l, now)
	zone, err := time.LoadLocation(l.Zone)
	if l.Every != "hour" || err != nil {
		return start, end
	}
	name := func(ms int64) string { return time.UnixMilli(ms).In(zone).Format("2006-01-02 15") }
	for name(start-1) == name(start) {
		start, _ = r.Period(l, start-1)
	}
	for name(end) == name(end-1) {
		_, end = r.Period(l, end)
	}
	return start, end
}

// byMidnight finds a day as most do: by its date at midnight, as package time makes it.
func byMidnight(r *model.Rules, l *weir.Limit, now int64) (start, end int64) {
	zone, err := time.LoadLocation(l.Zone)
	if l.Every != "day" || err != nil {
		return r.Period(l, now)
	}
	y, m, d := time.UnixMilli(now).In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone).UnixMilli(),
		time.Date(y, m, d+1, 0, 0, 0, 0, zone).UnixMilli()
}
