package cli

import (
	"strconv"
	"strings"
)

// splitFields splits a line at its commas. A field may stand in quotes, in which a doubled quote is
// one quote; a line ends where it ends, also within quotes. The reason says what is wrong.
func splitFields(line string) (fields []string, reason string) {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, ","), ""
	}
	for {
		field, rest, reason := nextField(line)
		if reason != "" {
			return nil, reason
		}
		fields = append(fields, field)
		if rest == "" {
			return fields, ""
		}
		line = rest[1:]
	}
}

// nextField takes the first field; the rest begins with a comma, or is empty.
func nextField(line string) (field, rest, reason string) {
	if !strings.HasPrefix(line, `"`) {
		end := strings.IndexByte(line, ',')
		if end < 0 {
			end = len(line)
		}
		if strings.Contains(line[:end], `"`) {
			return "", "", "has a quote within a field: quote the whole field"
		}
		return line[:end], line[end:], ""
	}
	var b strings.Builder
	rest = line[1:]
	for {
		end := strings.IndexByte(rest, '"')
		if end < 0 {
			return "", "", "has a quote that is never closed"
		}
		b.WriteString(rest[:end])
		rest = rest[end+1:]
		switch {
		case strings.HasPrefix(rest, `"`):
			b.WriteByte('"')
			rest = rest[1:]
		case rest == "" || rest[0] == ',':
			return b.String(), rest, ""
		default:
			return "", "", "goes on after a closing quote"
		}
	}
}

// shorten keeps a hostile value from filling a message. It is valid UTF-8 whatever came in.
func shorten(s string) string {
	const most = 64
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
