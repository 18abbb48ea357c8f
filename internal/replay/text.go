package replay

import (
	"strconv"
	"strings"
)

// shorten keeps a hostile value from filling a message. It is valid UTF-8 whatever came in.
func shorten(s string) string {
	const most = 64
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "… (" + strconv.Itoa(len(s)) + " bytes)"
}

// digitsOnly reports whether a text is one or more decimal digits.
func digitsOnly(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// multiply multiplies numbers of at least 0.
func multiply(a, b int64) (product int64, ok bool) {
	if a > 0 && b > (1<<63-1)/a {
		return 0, false
	}
	return a * b, true
}
