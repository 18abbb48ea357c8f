package broken

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

const milli = 1000

func num(n int64) *big.Int { return big.NewInt(n) }

func add(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }

func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

func times(a, b int64) *big.Int { return new(big.Int).Mul(num(a), num(b)) }

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// scale returns how many counts of a limit make a unit.
func scale(l *weir.Limit) int64 {
	if l.Kind == weir.Bucket {
		return milli
	}
	return 1
}

// capacityOf returns a limit's capacity in milli-units.
func capacityOf(l *weir.Limit) *big.Int { return times(l.Capacity, milli) }

// sumOf returns the sum of parts.
func sumOf(parts []driver.Part) *big.Int {
	total := new(big.Int)
	for _, p := range parts {
		total.Add(total, num(p.Units))
	}
	return total
}

// skipCheck leaves out the check of a line; if a reason is given, only its errors with that reason.
func skipCheck(line, reason string) model.Points {
	return model.Points{Refuse: func(c model.Check, right error) error {
		if e, _ := errors.AsType[*weir.Error](right); e != nil && c.Line == line &&
			(reason == "" || e.Reason == reason) {
			return nil
		}
		return right
	}}
}

func anyLimit(*weir.Limit) bool { return true }

// uncounted leaves out the checks, in some lines, that sums fit their counters.
func uncounted(on func(l *weir.Limit) bool, lines ...string) model.Points {
	return model.Points{Refuse: func(c model.Check, right error) error {
		e, _ := errors.AsType[*weir.Error](right)
		if e != nil && e.Reason == "is more than can be counted" && slices.Contains(lines, c.Line) &&
			on(&c.Take.Limit) {
			return nil
		}
		return right
	}}
}

// status changes the statuses in answers.
func status(change func(j *model.Judged, s *weir.LimitStatus)) model.Points {
	return model.Points{Status: func(j *model.Judged, right weir.LimitStatus) weir.LimitStatus {
		change(j, &right)
		return right
	}}
}

// numberRules returns variants that break section 1.
func numberRules() []pointVariant {
	back := func(r model.ClockReading, right int64) int64 {
		if r.Table {
			return right
		}
		return r.Now
	}
	table := func(latest func(r model.ClockReading) int64) model.Points {
		return model.Points{Now: func(r model.ClockReading, right int64) int64 {
			if r.Table {
				return latest(r)
			}
			return right
		}}
	}
	return []pointVariant{
		{"state moves backwards with the clock", "C1: clock skew", model.Points{Now: back}},
		{"the refill time moves backwards", "C1: clock skew", model.Points{Now: back,
			Bucket: func(t model.BucketRead, right model.Bucket) model.Bucket {
				if t.Was.Balance != nil && t.Now < t.Was.At {
					return t.Was.Gained(num(0), t.Limit, t.Now)
				}
				return right
			}}},
		{"a denial is not seen by the state", "1.3", model.Points{SetSeen: func(s model.SeenUpdate, right bool) bool {
			return right && !s.Denied
		}}},
		{"the lease table believes every clock", "1.3", table(func(r model.ClockReading) int64 { return r.Now })},
		{"the lease table stays ahead for ever", "1.3", table(func(r model.ClockReading) int64 {
			return max(r.Now, r.Latest)
		})},
		{"debt is rounded towards zero", "1.4", status(func(j *model.Judged, s *weir.LimitStatus) {
			s.Available = new(big.Int).Quo(j.Available, num(scale(&j.Limit))).Int64()
		})},
		{"available is rounded up", "1.4", status(func(j *model.Judged, s *weir.LimitStatus) {
			less := new(big.Int).Neg(j.Available)
			s.Available = -less.Div(less, num(scale(&j.Limit))).Int64()
		})},
		{"available goes through a float", "1.1", status(func(_ *model.Judged, s *weir.LimitStatus) {
			s.Available = int64(float32(s.Available))
		})},
		{"costs are judged as floats", "1.1", model.Points{Fits: func(j *model.Judged, _ bool) bool {
			available, _ := new(big.Float).SetInt(new(big.Int).Quo(j.Available, num(milli))).Float64()
			asked, _ := new(big.Float).SetInt(new(big.Int).Quo(j.Asked, num(milli))).Float64()
			return available >= asked
		}}},
		{"a bucket may be asked for anything", "1.1", uncounted(anyLimit, "1.1", "3.5")},
		{"a counter wraps", "64-bit overflow", uncounted(
			func(l *weir.Limit) bool { return l.Kind != weir.Bucket }, "3.6", "7.11")},
		{"a sum of costs wraps", "64-bit overflow", takes(func(_ model.Planned, t *model.Take) {
			var sum int64
			for i := range t.Parts {
				sum += t.Parts[i].Units
				t.Parts[i].Units = 0
			}
			if len(t.Parts) > 0 {
				t.Parts[0].Units = sum
			}
		})},
		{"a sum that does not fit is applied", "7.11", uncounted(
			func(l *weir.Limit) bool { return !l.Shadow }, "7.11")},
	}
}

// clockFronts returns variants that break line 1.2.
func clockFronts() []wrappedVariant {
	return []wrappedVariant{
		{"an instant counts to the next millisecond", "1.2", clock(func(t time.Time) time.Time {
			return t.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
		})},
		{"an instant counts to the second", "1.2", clock(func(t time.Time) time.Time {
			return t.Truncate(time.Second)
		})},
		{"instants have nanoseconds", "1.2", admitting(func(w *wrongWorld, l *weir.Lease) {
			l.ReservedAt = l.ReservedAt.Add(time.Duration(w.Now().Nanosecond() % 1e6))
		})},
		{"a lease does not say when its slots return", "1.2", admitting(func(_ *wrongWorld, l *weir.Lease) {
			l.HoldsUntil = time.Time{}
		})},
	}
}

// skewedWorld is a world that reads its clock wrongly.
type skewedWorld struct {
	conformance.World
	clock *conformance.Clock
	read  func(time.Time) time.Time
}

func (l skewedWorld) Now() time.Time { return l.clock.Now() }

func (l skewedWorld) Advance(d time.Duration) {
	l.clock.Advance(d)
	l.World.Advance(l.read(l.clock.Now()).Sub(l.World.Now()))
}

// clock reads the time wrongly, and the model uses the result.
func clock(read func(time.Time) time.Time) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		var start time.Time
		w.setup = func(s *conformance.Setup) { start, s.Start = s.Start, read(s.Start) }
		w.opened = func(inner conformance.World) conformance.World {
			return skewedWorld{inner, conformance.NewClock(start), read}
		}
	}
}

// keyRules returns variants that share state that must be separate, or separate state that must be
// shared.
func keyRules() []pointVariant {
	plain := strings.NewReplacer("-", "_", ".", "_")
	return []pointVariant{
		{"names lose their - and .", "N1: names with - or .", key(func(k *model.Key, _ *weir.Limit) {
			k.Name = plain.Replace(k.Name)
		})},
		{"entities lose their - and .", "N1: names with - or .", key(func(k *model.Key, _ *weir.Limit) {
			k.Entity = plain.Replace(k.Entity)
		})},
		{"names that differ by case only are the same", "N1: names with - or .", key(func(k *model.Key, _ *weir.Limit) {
			k.Entity = strings.ToLower(k.Entity)
		})},
		{"usage of all resources is one", "U1: usage", key(func(k *model.Key, _ *weir.Limit) {
			k.Resource = ""
		})},
		{"usage of all entities is one", "U1: usage", key(func(k *model.Key, _ *weir.Limit) {
			k.Entity = ""
		})},
		{"usage of an hour and of a day is one", "U1: usage", key(func(k *model.Key, _ *weir.Limit) {
			if k.Kind == weir.Budget {
				k.Name = "budget"
			}
		})},
	}
}

// key changes the key of a limit's state.
func key(change func(k *model.Key, l *weir.Limit)) model.Points {
	return model.Points{Key: func(l *weir.Limit, right model.Key) model.Key {
		change(&right, l)
		return right
	}}
}
