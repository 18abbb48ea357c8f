package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable returns a text with everything in it escaped, as Go does, that a terminal would not
// show but do: names and reasons may come from a server, and could otherwise move the cursor or
// forge a line.
func printable(text string) string {
	plain := true
	for _, r := range text {
		plain = plain && r != utf8.RuneError && strconv.IsPrint(r)
	}
	if plain {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}
