package replay

import (
	"strings"
	"time"
)

// What is said of a time that cannot be taken.
const (
	notTime     = "must be a time like 2023-11-16 18:17:03.9799600 or 2023-11-16T18:17:03Z, or a number"
	notCalendar = "is no date and time of the calendar"
	notInYears  = "must be from 1970 to 9999"
)

// parseInstant reads a time as Unix milliseconds, rounded down, or says what is wrong with it: RFC
// 3339, the same with a space and without a zone (which is UTC then), or a number of units.
func parseInstant(text string, u Unit) (atMS int64, reason string) {
	if isNumber(text) {
		atMS, _, reason = numberMS(text, u)
	} else {
		atMS, reason = parseCalendar(text)
	}
	switch {
	case reason != "":
		return 0, reason
	case atMS < 0 || atMS > maxAtMS:
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

// instantText writes an instant for people.
func instantText(atMS int64) string {
	return time.UnixMilli(atMS).UTC().Format("2006-01-02T15:04:05.000Z")
}
