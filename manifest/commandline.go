package manifest

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/money"
)

// shadowWord ends a limit on the command line that is a shadow limit.
const shadowWord = "shadow"

// ParseLimit parses a limit as it is written on the command line, and returns it normalized:
//
//	rpm:600                                  a bucket of 600 that regains 600 a minute
//	tpm:100000/min:200000                    a bucket of 200,000 that regains 100,000 a minute
//	day:5000:window/86400s                   5,000 in any 86,400 seconds
//	parallel:20:concurrency/300s             20 slots, each held for at most 300 seconds
//	usd_micros:50000000:budget/month         50,000,000 a calendar month in UTC
//	usd:50:budget/month@Europe/Berlin        the same in another time zone
//
// A duration is a unit (ms, s, sec, min, hour, day), or a number and a unit ("10s", "5min"). A
// calendar period is one of those of [weir.Limit]. ":shadow" at the end of any form makes a limit
// that never denies. Each error, joined, is a [*weir.Error] with code [weir.Invalid].
func ParseLimit(s string) (weir.Limit, error) {
	l, reason := parseLimit(s)
	if reason != "" {
		return weir.Limit{}, limitError(s, reason)
	}
	l, err := l.Normalize()
	if err != nil {
		var errs []error
		for _, e := range faults(err) {
			errs = append(errs, limitError(s, e.Field+" "+e.Reason))
		}
		return weir.Limit{}, errors.Join(errs...)
	}
	return l, nil
}

func limitError(s, reason string) error {
	return &weir.Error{Code: weir.Invalid, Field: "limit", Value: clip.Text(s), Reason: reason}
}

// parseLimit parses a limit without normalizing it, or returns what is wrong with it.
func parseLimit(s string) (l weir.Limit, reason string) {
	parts := strings.Split(s, ":")
	if last := len(parts) - 1; last > 0 && parts[last] == shadowWord {
		l.Shadow, parts = true, parts[:last]
	}
	if len(parts) < 2 || len(parts) > 3 {
		return l, "must be NAME:RATE[/PERIOD][:CAPACITY] or NAME:CAPACITY:KIND/PERIOD"
	}
	l.Name = parts[0]
	if len(parts) == 3 && parts[2] != "" && (parts[2][0] < '0' || parts[2][0] > '9') {
		kind, period, _ := strings.Cut(parts[2], "/")
		if l.Capacity, reason = parseAmount(l.Name, "capacity", parts[1]); reason != "" {
			return l, reason
		}
		l.Kind = weir.Kind(kind)
		return l, setPeriod(&l, period)
	}
	rate, period, slash := strings.Cut(parts[1], "/")
	if l.RefillAmount, reason = parseAmount(l.Name, "rate", rate); reason != "" {
		return l, reason
	}
	if slash {
		if l.RefillPeriod, reason = parsePeriod(period); reason != "" {
			return l, reason
		}
	}
	l.Capacity = l.RefillAmount
	if len(parts) == 3 {
		l.Capacity, reason = parseAmount(l.Name, "capacity", parts[2])
	}
	return l, reason
}

// setPeriod parses the part after the kind.
func setPeriod(l *weir.Limit, period string) (reason string) {
	switch l.Kind {
	case weir.Window:
		l.Window, reason = parsePeriod(period)
	case weir.Concurrency:
		l.Timeout, reason = parsePeriod(period)
	case weir.Budget:
		var zoned bool
		l.Every, l.Zone, zoned = strings.Cut(period, "@")
		if zoned && l.Zone == "" {
			return "needs a zone after '@'"
		}
	default:
		return "kind must be window, concurrency or budget, and a bucket's capacity a number"
	}
	return reason
}

// parseAmount parses an amount of a limit, as parseUnits does. The reason says how to write money if
// the limit's name says that the limit is on money.
func parseAmount(limit, what, s string) (n int64, reason string) {
	if n, reason = parseUnits(what, s); reason != "" {
		reason += money.Hint(limit, s)
	}
	return n, reason
}

// parseUnits parses a number above zero. Zero is refused, because a rate of zero would mean the
// default.
func parseUnits(what, s string) (n int64, reason string) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, what + " must be a whole number in decimal digits"
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case s == "":
		return 0, what + " is missing"
	case err != nil:
		return 0, what + " must be a whole number within 64 bits"
	case n == 0:
		return 0, what + " must be above zero"
	}
	return n, ""
}

// units returns the units of a duration on the command line, the longest first. Of units with the
// same length, the first is used for writing.
func units() []struct {
	name   string
	length time.Duration
} {
	return []struct {
		name   string
		length time.Duration
	}{
		{"day", 24 * time.Hour}, {"hour", time.Hour}, {"min", time.Minute},
		{"s", time.Second}, {"sec", time.Second}, {"ms", time.Millisecond},
	}
}

// parsePeriod parses a unit, or a number and a unit.
func parsePeriod(s string) (d time.Duration, reason string) {
	name := strings.TrimLeft(s, "0123456789")
	n := int64(1)
	if digits := s[:len(s)-len(name)]; digits != "" {
		if n, reason = parseUnits("period", digits); reason != "" {
			return 0, reason
		}
	}
	for _, u := range units() {
		if u.name == name {
			// A number that a duration cannot hold becomes the longest duration, which Normalize
			// refuses.
			n = min(n, int64(math.MaxInt64/u.length))
			return time.Duration(n) * u.length, ""
		}
	}
	return 0, "period must be [N]s, [N]min, [N]hour or [N]day"
}

// FormatLimit returns a normalized limit in the form that [ParseLimit] parses.
func FormatLimit(l weir.Limit) string {
	var b strings.Builder
	b.WriteString(l.Name + ":")
	switch l.Kind {
	case weir.Window:
		b.WriteString(strconv.FormatInt(l.Capacity, 10) + ":window/" + formatSeconds(l.Window))
	case weir.Concurrency:
		b.WriteString(strconv.FormatInt(l.Capacity, 10) + ":concurrency/" + formatSeconds(l.Timeout))
	case weir.Budget:
		b.WriteString(strconv.FormatInt(l.Capacity, 10) + ":budget/" + l.Every)
		if l.Zone != utc {
			b.WriteString("@" + l.Zone)
		}
	default:
		b.WriteString(strconv.FormatInt(l.RefillAmount, 10))
		own := l.Capacity != l.RefillAmount
		if own || l.RefillPeriod != time.Minute {
			b.WriteString("/" + formatPeriod(l.RefillPeriod))
		}
		if own {
			b.WriteString(":" + strconv.FormatInt(l.Capacity, 10))
		}
	}
	if l.Shadow {
		b.WriteString(":" + shadowWord)
	}
	return b.String()
}

// formatPeriod returns a duration in the longest unit of which it is a multiple.
func formatPeriod(d time.Duration) string {
	for _, u := range units() {
		if d%u.length == 0 {
			if d == u.length {
				return u.name
			}
			return strconv.FormatInt(int64(d/u.length), 10) + u.name
		}
	}
	return d.String()
}

func formatSeconds(d time.Duration) string {
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}
