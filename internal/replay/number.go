package replay

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// What is said of a number that cannot be taken.
const (
	notWhole   = "must be a whole number"
	over64Bits = "is more than 64 bits hold"
)

// parseTokens reads a whole number, or says what is wrong with it.
func parseTokens(text string) (n int64, reason string) {
	digits := strings.TrimPrefix(text, "-")
	switch {
	case !digitsOnly(digits):
		return 0, notWhole
	case digits != text:
		return 0, "must not be negative"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, over64Bits
	}
	return n, ""
}

// isNumber reports whether a text is digits, perhaps with decimals.
func isNumber(text string) bool {
	whole, decimals, dotted := strings.Cut(text, ".")
	return digitsOnly(whole) && (!dotted || digitsOnly(decimals))
}

// numberMS turns a number of units into milliseconds, rounded down; more is true where something
// was cut off.
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

// parseDurationMS reads how long a call lasted, as a number or as Go writes durations, rounded up
// to a millisecond, or says what is wrong with it.
func parseDurationMS(text string, u Unit) (ms int64, reason string) {
	more := false
	switch {
	case isNumber(text):
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
	if ms < 0 || ms > maxCallMS {
		return 0, "must be less than an hour: a lease lives no longer"
	}
	return ms, ""
}
