// Package clip shortens what errors and logs quote, so that a hostile value does not fill them.
package clip

import (
	"strconv"
	"strings"
)

// Text returns the first 64 bytes of a text, as [To] does, for quoting values in errors.
func Text(s string) string { return To(s, 64) }

// To returns a text as valid UTF-8. If it is longer than most bytes, To returns the beginning and
// the original number of bytes.
func To(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
