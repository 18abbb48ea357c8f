package broken

import (
	"math"
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// balance changes the balance of a bucket that has been used. It may change right in place.
func balance(change func(t model.BucketRead, right *big.Int) *big.Int) model.Points {
	return model.Points{Bucket: func(t model.BucketRead, right model.Bucket) model.Bucket {
		if t.Was.Balance != nil {
			right.Balance = change(t, right.Balance)
		}
		return right
	}}
}

// unusedBucket changes the balance of a bucket that was never used.
func unusedBucket(change func(l *weir.Limit) *big.Int) model.Points {
	return model.Points{Bucket: func(t model.BucketRead, right model.Bucket) model.Bucket {
		if t.Was.Balance == nil {
			right.Balance = change(t.Limit)
		}
		return right
	}}
}

// gaining changes what a bucket gains between two instants.
func gaining(gain func(l *weir.Limit, from, to int64) *big.Int) model.Points {
	return balance(func(t model.BucketRead, _ *big.Int) *big.Int {
		return t.Was.Gained(gain(&t.Was.Limit, t.Was.At, t.Now), t.Limit, t.Now).Balance
	})
}

func debtStays(t model.BucketRead, right *big.Int) *big.Int {
	if t.Was.Balance.Sign() < 0 {
		return t.Was.Balance
	}
	return right
}

// forgottenAt changes when a bucket is forgotten.
func forgottenAt(change func(t model.Expiry, right int64) int64) model.Points {
	return until(model.Kept, weir.Bucket, change)
}

// bucketRules returns variants that break lines 2.1 and 2.5.
func bucketRules() []pointVariant {
	return []pointVariant{
		{"a bucket starts empty", "2.5", unusedBucket(func(*weir.Limit) *big.Int { return num(0) })},
		{"the gain is floored at each touch", "S1: starvation",
			gaining(func(l *weir.Limit, from, to int64) *big.Int { // the usual mistake: by the difference of the instants
				n := new(big.Int).Mul(times(l.RefillAmount, milli), num(to-from))
				return n.Div(n, num(l.RefillPeriod.Milliseconds()))
			})},
		{"the gain is rounded up at each touch", "2.1",
			gaining(func(l *weir.Limit, from, to int64) *big.Int {
				return add(model.Gain(l, from, to), num(min(to-from, 1)))
			})},
		{"a bucket is refilled once a period", "2.1",
			gaining(func(l *weir.Limit, from, to int64) *big.Int {
				p := l.RefillPeriod.Milliseconds()
				return new(big.Int).Mul(times(l.RefillAmount, milli), num(to/p-from/p))
			})},
		{"a bucket regains its capacity each period", "2.1",
			gaining(func(l *weir.Limit, from, to int64) *big.Int {
				c := *l
				c.RefillAmount = l.Capacity
				return model.Gain(&c, from, to)
			})},
		{"a bucket in debt regains nothing", "2.1", balance(debtStays)},
		{"a bucket in debt gains nothing", "7.5", balance(debtStays)},
		{"a limit that has enough is not refilled", "S2: refill dropped",
			balance(func(t model.BucketRead, right *big.Int) *big.Int {
				if t.Was.Balance.Cmp(num(milli)) >= 0 {
					return least(t.Was.Balance, capacityOf(t.Limit))
				}
				return right
			})},
		{"a balance has no ceiling", "2.1", balance(func(t model.BucketRead, _ *big.Int) *big.Int {
			return add(t.Was.Balance, model.Gain(&t.Was.Limit, t.Was.At, t.Now))
		})},
	}
}

// changedBucketRules returns variants that break lines 8.2 and 8.4.
func changedBucketRules() []pointVariant {
	return []pointVariant{
		{"the new rate counts for the past", "8.2", balance(func(t model.BucketRead, _ *big.Int) *big.Int {
			t.Was.Limit = *t.Limit
			return t.Was.Gained(model.Gain(t.Limit, t.Was.At, t.Now), t.Limit, t.Now).Balance
		})},
		{"a raised capacity fills the bucket up", "8.2",
			balance(func(t model.BucketRead, right *big.Int) *big.Int {
				return add(right, times(max(t.Limit.Capacity-t.Was.Limit.Capacity, 0), milli))
			})},
		{"a lowered capacity does not trim", "L2: changed limits",
			balance(func(t model.BucketRead, _ *big.Int) *big.Int {
				own := &t.Was.Limit
				return t.Was.Gained(model.Gain(own, t.Was.At, t.Now), own, t.Now).Balance
			})},
		{"a lowered capacity becomes debt", "8.2",
			balance(func(t model.BucketRead, right *big.Int) *big.Int {
				return sub(right, times(max(t.Was.Limit.Capacity-t.Limit.Capacity, 0), milli))
			})},
		{"a changed capacity fills the bucket", "capacity set back and forth",
			balance(func(t model.BucketRead, right *big.Int) *big.Int {
				if !t.Was.Limit.Same(*t.Limit) {
					return capacityOf(t.Limit)
				}
				return right
			})},
		{"an added limit starts empty", "L1: changed limits", unusedBucket(func(l *weir.Limit) *big.Int {
			if l.Name == "b" {
				return num(0)
			}
			return capacityOf(l)
		})},
		{"a full bucket is never forgotten", "8.4",
			forgottenAt(func(model.Expiry, int64) int64 { return math.MaxInt64 })},
		{"a full bucket is forgotten at once", "8.4",
			forgottenAt(func(_ model.Expiry, right int64) int64 { return right - 60_000 })},
		{"an idle bucket is forgotten", "8.4",
			forgottenAt(func(t model.Expiry, _ int64) int64 { return t.From + 60_000 })},
		{"a denial brings a forgotten bucket back", "8.4",
			model.Points{SetSeen: func(model.SeenUpdate, bool) bool { return true }}},
	}
}

// until changes when something of one kind of limit ends; an empty kind means any.
func until(
	cause model.ExpiryCause, kind weir.Kind, change func(t model.Expiry, right int64) int64,
) model.Points {
	return model.Points{Until: func(t model.Expiry, right int64) int64 {
		if t.Cause == cause && (kind == "" || t.Limit.Kind == kind) {
			return change(t, right)
		}
		return right
	}}
}

func later(ms int64) func(model.Expiry, int64) int64 {
	return func(_ model.Expiry, right int64) int64 { return right + ms }
}

// returning changes when units no longer count.
func returning(by int64) model.Points {
	return model.Points{Returned: func(c model.PieceRead, _ bool) bool { return c.Until <= c.Now+by }}
}

// occupancyRules returns variants that break lines 2.2 and 2.3.
func occupancyRules() []pointVariant {
	return []pointVariant{
		{"a window is fixed", "2.2", until(model.Taken, weir.Window, func(t model.Expiry, _ int64) int64 {
			ms := t.Limit.Window.Milliseconds()
			return (t.From/ms + 1) * ms
		})},
		{"a window is a millisecond too long", "2.2", until(model.Taken, weir.Window, later(1))},
		{"a window is a millisecond too short", "2.2", until(model.Taken, weir.Window, later(-1))},
		{"units return after their instant", "2.2", returning(-1)},
		{"units return early", "2.2", returning(500)},
		{"slots never time out", "leaked slots", until(model.Taken, weir.Concurrency, later(math.MaxInt64/2))},
		{"slots time out late", "2.3", until(model.Taken, weir.Concurrency, later(1))},
	}
}

// fitRules returns variants that break lines 2.1 to 2.6 and 3.1: which takes fit.
func fitRules() []pointVariant {
	strict := func(kind weir.Kind) model.Points {
		return fits(func(j *model.Judged, right bool) bool {
			return right && (j.Limit.Kind != kind || j.Available.Cmp(j.Asked) > 0 || j.Asked.Sign() == 0)
		})
	}
	loose := func(kind weir.Kind) model.Points {
		return fits(func(j *model.Judged, right bool) bool {
			return right || j.Limit.Kind == kind && j.Available.Sign() > 0
		})
	}
	// room gives every limit except buckets some more units.
	room := func(more int64) model.Points {
		p := status(func(j *model.Judged, s *weir.LimitStatus) {
			if s.Kind != weir.Bucket {
				s.Available += more
			}
		})
		p.Fits = func(j *model.Judged, right bool) bool {
			if j.Limit.Kind == weir.Bucket {
				return right
			}
			return add(j.Available, num(more)).Cmp(j.Asked) >= 0
		}
		return p
	}
	return []pointVariant{
		{"the last unit of a bucket is refused", "2.1", strict(weir.Bucket)},
		{"the last unit of a window is refused", "2.2", strict(weir.Window)},
		{"the last slot is refused", "2.3", strict(weir.Concurrency)},
		{"the last unit of a budget is refused", "2.4", strict(weir.Budget)},
		{"a bucket admits while anything is left", "2.1", loose(weir.Bucket)},
		{"a window admits while anything is left", "2.2", loose(weir.Window)},
		{"slots are admitted while any is left", "2.3", loose(weir.Concurrency)},
		{"a budget admits while anything is left", "2.4", loose(weir.Budget)},
		{"a cost of 0 always fits", "2.6", fits(func(j *model.Judged, right bool) bool {
			return right || j.Asked.Sign() == 0
		})},
		{"a cost of 0 needs a unit", "2.6", fits(func(j *model.Judged, right bool) bool {
			return right && (j.Asked.Sign() != 0 || j.Available.Sign() > 0)
		})},
		{"nothing is ever denied", "3.1", fits(func(*model.Judged, bool) bool { return true })},
		{"a new limit is not empty", "2.5", room(-1)},
		{"a limit has a unit to spare", "2.2", room(1)},
	}
}

func fits(f func(j *model.Judged, right bool) bool) model.Points { return model.Points{Fits: f} }

// calendarRules returns variants that break line 2.4.
func calendarRules() []pointVariant {
	calendar := model.NewCalendar()
	const hour, day = int64(time.Hour / time.Millisecond), int64(24 * time.Hour / time.Millisecond)
	// lasting changes the length of periods, counted from their start.
	lasting := func(every string, length int64) model.Points {
		return period(every, func(l *weir.Limit, at time.Time) int64 {
			start, _ := l.Period(at)
			return start.UnixMilli() + length
		})
	}
	// fixed starts periods at multiples of their length, plus an offset.
	fixed := func(every string, offset, length int64) model.Points {
		return period(every, func(_ *weir.Limit, at time.Time) int64 {
			return (at.UnixMilli()-offset)/length*length + offset + length
		})
	}
	return []pointVariant{
		{"budgets are in UTC", "2.4", period("", func(l *weir.Limit, at time.Time) int64 {
			_, end := calendar.Period(&weir.Limit{Every: l.Every, Zone: "UTC"}, at.UnixMilli())
			return end
		})},
		{"a day has 24 hours", "2.4", lasting("day", day)},
		{"a week begins on Sunday", "2.4", fixed("week", 3*day, 7*day)}, // the first Sunday was 1970-01-04
		{"a month has 30 days", "2.4", lasting("month", 30*day)},
		{"hours are those of UTC", "2.4", fixed("hour", 0, hour)},
		{"a repeated hour counts once", "2.4", period("hour", onceAnHour)},
		{"a day begins with the first midnight shown", "2.4", period("day", byMidnight)},
		{"a budget rolls", "2.4", period("", func(_ *weir.Limit, at time.Time) int64 {
			return at.UnixMilli() + day
		})},
	}
}

// period changes the end of a budget's periods of one length; an empty length means any.
func period(every string, end func(l *weir.Limit, at time.Time) int64) model.Points {
	return until(model.Taken, weir.Budget, func(t model.Expiry, right int64) int64 {
		if every == "" || t.Limit.Every == every {
			return end(t.Limit, time.UnixMilli(t.From))
		}
		return right
	})
}

// onceAnHour ends an hour when the local clock shows another one, so that a repeated hour counts
// once.
func onceAnHour(l *weir.Limit, at time.Time) int64 {
	zone := zoneOf(l)
	name := func(t time.Time) string { return t.In(zone).Format("2006-01-02 15") }
	_, end := l.Period(at)
	for name(end) == name(at) {
		_, end = l.Period(end)
	}
	return end.UnixMilli()
}

// byMidnight finds the end of a day in the usual wrong way: as midnight of the next date, as
// package time computes it.
func byMidnight(l *weir.Limit, at time.Time) int64 {
	zone := zoneOf(l)
	y, m, d := at.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone).UnixMilli()
}

func zoneOf(l *weir.Limit) *time.Location {
	zone, err := time.LoadLocation(l.Zone)
	if err != nil {
		return time.UTC // not reached: definitions with such a zone are refused
	}
	return zone
}
