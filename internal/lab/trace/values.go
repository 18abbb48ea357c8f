package trace

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/text"
)

// Reasons to refuse a time.
const (
	notTime     = "must be a time like 2023-11-16 18:17:03.9799600 or 2023-11-16T18:17:03Z, or a number"
	notCalendar = "is not a valid date and time"
	notInYears  = "must be from 1970 to 9999"
)

// parseTime reads a time as Unix milliseconds, rounded down, or returns the reason to refuse it. A
// time is RFC 3339, the same with a space or without a zone (then it is UTC), or a number of units.
func parseTime(text string, u Unit) (atMS int64, reason string) {
	if IsNumber(text) {
		atMS, _, reason = numberMS(text, u)
	} else {
		atMS, reason = parseCalendar(text)
	}
	switch {
	case reason != "":
		return 0, reason
	case atMS < 0 || atMS > MaxAtMS:
		return 0, notInYears
	}
	return atMS, ""
}

// parseCalendar reads a date and a time.
func parseCalendar(text string) (atMS int64, reason string) {
	const date = len("2006-01-02")
	const seconds = len("2006-01-02 15:04:05")
	if len(text) < seconds || text[date] != ' ' && text[date] != 'T' || text[date+3] != ':' {
		return 0, notTime
	}
	rest := text[seconds:]
	if strings.HasPrefix(rest, ".") {
		digits := len(rest[1:]) - len(strings.TrimLeft(rest[1:], "0123456789"))
		if digits == 0 || digits > 9 {
			return 0, notTime
		}
		rest = rest[1+digits:]
	} else if strings.HasPrefix(rest, ",") {
		return 0, notTime
	}
	if rest == "" {
		text += "Z"
	}
	at, err := time.Parse(time.RFC3339Nano, text[:date]+"T"+text[date+1:])
	switch {
	case err != nil && strings.Contains(err.Error(), "out of range"):
		return 0, notCalendar
	case err != nil:
		return 0, notTime
	}
	return at.UnixMilli(), ""
}

// FormatTime writes a time in UTC.
func FormatTime(atMS int64) string {
	return time.UnixMilli(atMS).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Reasons to refuse a number.
const (
	notWhole   = "must be a whole number"
	over64Bits = "does not fit in 64 bits"
)

// ParseTokens reads a whole number, or returns the reason to refuse it.
func ParseTokens(s string) (n int64, reason string) {
	digits := strings.TrimPrefix(s, "-")
	switch {
	case !text.IsDigits(digits):
		return 0, notWhole
	case digits != s:
		return 0, "must not be negative"
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, over64Bits
	}
	return n, ""
}

// IsNumber reports whether a text is a decimal number, with or without decimals.
func IsNumber(s string) bool {
	whole, decimals, dotted := strings.Cut(s, ".")
	return text.IsDigits(whole) && (!dotted || text.IsDigits(decimals))
}

// numberMS converts a number of units to milliseconds, rounded down; more is true if it was
// rounded.
func numberMS(text string, u Unit) (ms int64, more bool, reason string) {
	whole, decimals, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, false, over64Bits
	}
	if per := u.perMS(); per > 0 {
		return n / per, n%per != 0 || strings.Trim(decimals, "0") != "", ""
	}
	if n > math.MaxInt64/1000 {
		return 0, false, over64Bits
	}
	ms = 1000 * n
	kept := (decimals + "000")[:3]
	if len(decimals) > 3 {
		more = strings.Trim(decimals[3:], "0") != ""
	}
	thousandths, _ := strconv.ParseInt(kept, 10, 64) // three digits
	if ms > math.MaxInt64-thousandths {
		return 0, false, over64Bits
	}
	return ms + thousandths, more, ""
}

// parseDurationMS reads the duration of a call, as a number or as a Go duration, rounded up to a
// millisecond, or returns the reason to refuse it.
func parseDurationMS(text string, u Unit) (ms int64, reason string) {
	more := false
	switch {
	case IsNumber(text):
		if ms, more, reason = numberMS(text, u); reason != "" {
			return 0, reason
		}
		if more {
			ms++
		}
	default:
		d, err := time.ParseDuration(text)
		switch {
		case err != nil || strings.HasPrefix(text, "+"):
			return 0, "must be a number of " + string(u) + ", or a duration like 1.5s"
		case d < 0:
			return 0, "must not be negative"
		}
		ms = int64((d + min(time.Millisecond-1, 1<<63-1-d)) / time.Millisecond)
	}
	if ms < 0 || ms > MaxCallMS {
		return 0, "must be less than an hour: a lease lives no longer"
	}
	return ms, ""
}

// MaxCallMS bounds the duration of a call. It is less than the life of a lease, so that the lease
// can be settled.
const MaxCallMS = 60*60*1000 - 1
