// Package clip shortens what errors and logs quote, so that a hostile value does not fill them.
package clip

import (
	"slices"
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

// maxNames bounds the names that [Names] lists.
const maxNames = 10

// Names returns names for an error that lists what there is: sorted, each once, separated by
// commas. Beyond ten it returns the first ten and the number of the others.
func Names(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], " and "+strconv.Itoa(n)+" more"
	}
	return strings.Join(names, ", ") + more
}
