// Package clip shortens what errors and logs quote, so that a hostile value does not fill them.
package clip

import (
	"strconv"
	"strings"
)

// Text is [To] to the 64 bytes that errors quote of a value.
func Text(s string) string { return To(s, 64) }

// To returns a text as valid UTF-8. Of one that is longer than most bytes it returns the beginning
// and says how many there were.
func To(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "… (" + strconv.Itoa(len(s)) + " bytes)"
}
