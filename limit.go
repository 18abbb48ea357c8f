package weir

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // budgets use IANA zones, and a machine may have no zone files

	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/kernel"
)

// Kind is how a limit counts; see "Kinds" in docs/semantics.md.
type Kind string

// The four kinds of limit.
const (
	// Bucket holds up to Capacity units and regains RefillAmount per RefillPeriod.
	Bucket Kind = "bucket"
	// Window counts the units of the last Window (a sliding log): each unit returns exactly Window
	// after it was reserved.
	Window Kind = "window"
	// Concurrency counts slots, which return when the lease is settled, or Timeout after it was
	// last renewed.
	Concurrency Kind = "concurrency"
	// Budget admits Capacity units in each calendar period.
	Budget Kind = "budget"
)

// Limit is a named rule. Fields that do not belong to its kind must be zero.
type Limit struct {
	// Name is the name by which costs refer to the limit: 1 to 64 bytes, first a letter, then
	// letters, digits, '_', '.' or '-'. It must not be "wcu", which the DynamoDB tables reserve.
	Name string
	// Kind is how the limit counts. Default: Bucket.
	Kind Kind
	// Capacity is the ceiling in units, above zero; for a bucket at most MaxInt64/1000.
	Capacity int64
	// RefillAmount is the number of units that a bucket regains per RefillPeriod. Default:
	// Capacity.
	RefillAmount int64
	// RefillPeriod is a bucket's period, in whole milliseconds. Default: one minute.
	RefillPeriod time.Duration
	// Window is how long a unit of a window limit stays occupied, in whole seconds.
	Window time.Duration
	// Timeout is how long a slot is held unless its lease is extended, in whole seconds.
	Timeout time.Duration
	// Every is a budget's calendar period: "hour", "day", "week" (from Monday) or "month".
	Every string
	// Zone is the IANA time zone of a budget's calendar. Default: UTC.
	Zone string
	// Shadow makes a limit one that is judged, charged and reported but never denies (`enforce:
	// false` in a limits file). Default: false.
	Shadow bool

	zone *time.Location // Zone, loaded by Normalize
}

// Bounds of a limit's numbers. A period of at most a century keeps every product of the arithmetic
// within 128 bits, and fits the whole seconds that TigerBeetle counts in.
const (
	MaxBucketUnits = math.MaxInt64 / 1000
	maxPeriod      = 100 * 365 * 24 * time.Hour
)

// Validate reports every mistake in the limit, joined; each is an [*Error] with code [Invalid].
func (l Limit) Validate() error {
	_, err := l.Normalize()
	return err
}

// Normalize returns the limit with its defaults filled in, or every mistake in it, joined; each is
// an [*Error] with code [Invalid].
func (l Limit) Normalize() (Limit, error) {
	if l.Kind == "" {
		l.Kind = Bucket
	}
	var errs []error
	bad := func(field string, value any, reason string) {
		errs = append(errs, invalid(field, value, reason))
	}
	if reason := identifier.CheckLimit(l.Name); reason != "" {
		bad("name", l.Name, reason)
	}
	if l.Capacity <= 0 {
		bad("capacity", l.Capacity, "must be above zero")
	}
	l.normalizeKind(bad)
	return l, errors.Join(errs...)
}

// normalizeKind fills in the defaults of the limit's kind and checks its fields.
func (l *Limit) normalizeKind(bad func(field string, value any, reason string)) {
	switch l.Kind {
	case Bucket:
		if l.RefillPeriod == 0 {
			l.RefillPeriod = time.Minute
		}
		if l.Capacity > MaxBucketUnits {
			bad("capacity", l.Capacity, fmt.Sprintf("a bucket holds at most %d", int64(MaxBucketUnits)))
		}
		if l.RefillAmount < 0 || l.RefillAmount > MaxBucketUnits {
			bad("refill_amount", l.RefillAmount,
				fmt.Sprintf("must be between 1 and %d", int64(MaxBucketUnits)))
		} else if l.RefillAmount == 0 {
			l.RefillAmount = l.Capacity
		}
		checkPeriod(bad, "refill_period", l.RefillPeriod, time.Millisecond)
	case Window:
		checkPeriod(bad, "window", l.Window, time.Second)
	case Concurrency:
		checkPeriod(bad, "timeout", l.Timeout, time.Second)
	case Budget:
		l.normalizeBudget(bad)
	default:
		bad("kind", string(l.Kind), "must be bucket, window, concurrency or budget")
		return // which fields belong to it is unknown
	}
	l.rejectForeign(bad)
}

func (l *Limit) normalizeBudget(bad func(field string, value any, reason string)) {
	switch l.Every {
	case kernel.Hour, kernel.Day, kernel.Week, kernel.Month:
	default:
		bad("every", l.Every, "must be hour, day, week or month")
	}
	if l.Zone == "" {
		l.Zone = "UTC"
	}
	if l.Zone == "Local" {
		bad("zone", l.Zone, "must be the name of an IANA time zone, not the machine's own zone")
		return
	}
	zone, err := time.LoadLocation(l.Zone)
	if err != nil {
		bad("zone", l.Zone, "is not a known IANA time zone")
		return
	}
	l.zone = zone
}

// checkPeriod checks a duration that must be a positive multiple of a unit.
func checkPeriod(bad func(string, any, string), field string, d, unit time.Duration) {
	name := "seconds"
	if unit == time.Millisecond {
		name = "milliseconds"
	}
	switch {
	case d <= 0:
		bad(field, d, "must be above zero")
	case d%unit != 0:
		bad(field, d, "must be whole "+name)
	case d > maxPeriod:
		bad(field, d, "must be at most a hundred years")
	}
}

// rejectForeign refuses fields that belong to other kinds, because the limit would then be
// ambiguous.
func (l *Limit) rejectForeign(bad func(field string, value any, reason string)) {
	for _, f := range []struct {
		name  string
		value any
		set   bool
		kind  Kind
	}{
		{"refill_amount", l.RefillAmount, l.RefillAmount != 0, Bucket},
		{"refill_period", l.RefillPeriod, l.RefillPeriod != 0, Bucket},
		{"window", l.Window, l.Window != 0, Window},
		{"timeout", l.Timeout, l.Timeout != 0, Concurrency},
		{"every", l.Every, l.Every != "", Budget},
		{"zone", l.Zone, l.Zone != "", Budget},
	} {
		if f.set && f.kind != l.Kind {
			bad(f.name, f.value, fmt.Sprintf("belongs to a %s, not to a %s", f.kind, l.Kind))
		}
	}
}

// Same reports whether two normalized limits are equal.
func (l Limit) Same(o Limit) bool {
	l.zone, o.zone = nil, nil
	return l == o
}

// Definition returns the limit as the counters of package kernel take it.
func (l *Limit) Definition() kernel.Definition {
	return kernel.Definition{
		Capacity: l.Capacity,
		Refill:   l.RefillAmount,
		LengthMS: max(l.RefillPeriod, l.Window, l.Timeout).Milliseconds(), // at most one is set
		Calendar: l.calendar(),
	}
}

// Period returns the calendar period of a budget that contains t: from start, up to but not
// including end. See [kernel.Calendar.Period].
func (l *Limit) Period(t time.Time) (start, end time.Time) { return l.calendar().Period(t) }

// calendar returns the calendar of a budget. It loads the zone of a limit that was not normalized.
func (l *Limit) calendar() kernel.Calendar {
	zone := l.zone
	if zone == nil && l.Zone != "" {
		zone, _ = time.LoadLocation(l.Zone) // UTC if there is no such zone
	}
	return kernel.Calendar{Every: l.Every, Zone: zone}
}

// Refill returns the balance of a bucket at the instant to, in milli-units, if it was balanceMilli
// at the instant from, both in Unix milliseconds. The result never exceeds the capacity, and a to
// before from changes nothing. Every store must count like this (docs/semantics.md, 2.1).
func (l *Limit) Refill(balanceMilli, from, to int64) int64 {
	return l.Definition().Rate().Refill(balanceMilli, from, to)
}

// RefillWait returns the time until a bucket that was refilled at now has reached want milli-units,
// if nothing is taken. It returns at most MaxInt64 nanoseconds, even for a want above the capacity.
func (l *Limit) RefillWait(balanceMilli, want, now int64) time.Duration {
	return kernel.Duration(l.Definition().Rate().Wait(balanceMilli, want, now))
}

// NormalizeLimits normalizes the limits of a level, sorts them by name, and refuses a name that
// occurs twice. The field of each error begins with field and the limit's name.
func NormalizeLimits(field string, limits []Limit) ([]Limit, error) {
	var errs []error
	out := make([]Limit, 0, len(limits))
	seen := make(map[string]bool, len(limits))
	for _, l := range limits {
		n, err := l.Normalize()
		if err != nil {
			errs = append(errs, prefixField(field+"."+l.Name, err))
			continue
		}
		if seen[n.Name] {
			errs = append(errs, invalid(field+"."+n.Name, n.Name, "is given twice"))
			continue
		}
		seen[n.Name] = true
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	return out, errors.Join(errs...)
}
