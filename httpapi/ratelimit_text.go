package httpapi

import (
	"strconv"
	"time"
)

// appendList appends a list of a structured field, as far as there is room: what was exceeded
// first.
func appendList(text []byte, items []rateItem, part ratePart, now time.Time) []byte {
	from := len(text)
	for _, exceeded := range []bool{true, false} {
		for i := range items {
			if items[i].status.Exceeded != exceeded {
				continue
			}
			before := len(text)
			if before > from {
				text = append(text, ", "...)
			}
			start := len(text)
			text = items[i].append(text, part, now)
			if before-from+len(text)-start+2 > maxRateLimitHeader {
				text = text[:before]
			}
		}
	}
	return text
}

// appendParameter appends an integer, no larger than a structured field can hold.
func appendParameter(text []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(text, name...), min(n, maxStructured), 10)
}

// appendQuoted appends a string of a structured field, which has only printable ASCII.
func appendQuoted(text []byte, s string) []byte {
	text = append(text, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			text = append(text, '\\', c)
		case c < ' ' || c > '~':
			text = append(text, '?')
		default:
			text = append(text, c)
		}
	}
	return append(text, '"')
}
