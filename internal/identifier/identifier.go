// Package identifier checks the names of entities, resources and limits.
package identifier

import (
	"fmt"
	"unicode/utf8"
)

// The largest lengths of names, in bytes. They are those of the Python library, with which weir
// shares tables.
const (
	MaxEntity   = 256
	MaxResource = 64
	MaxLimit    = 64
)

// CheckEntity returns what is wrong with an entity's name; empty if nothing is. A name may contain
// a slash if slash is true.
func CheckEntity(s string, slash bool) string {
	if slash {
		return check(s, MaxEntity, isAlnum, isInPath)
	}
	return check(s, MaxEntity, isAlnum, isInEntity)
}

// CheckResource returns what is wrong with a resource's name; empty if nothing is.
func CheckResource(s string) string {
	return check(s, MaxResource, isAlpha, isInResource)
}

// CheckLimit returns what is wrong with a limit's name; empty if nothing is.
func CheckLimit(s string) string {
	if s == "wcu" {
		return "is reserved"
	}
	return check(s, MaxLimit, isAlpha, isInLimit)
}

func check(s string, limit int, first, rest byteSet) string {
	if s != "" && len(s) <= limit && first.has(s[0]) {
		at := 1
		for at < len(s) && rest.has(s[at]) {
			at++
		}
		if at == len(s) {
			return ""
		}
	}
	switch {
	case s == "":
		return "must not be empty"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case len(s) > limit:
		return fmt.Sprintf("must have at most %d characters, has %d", limit, len(s))
	case !first.has(s[0]):
		return fmt.Sprintf("must not begin with %q", firstRune(s))
	}
	at := 1
	for rest.has(s[at]) {
		at++
	}
	return fmt.Sprintf("must not contain %q", firstRune(s[at:]))
}

// byteSet names a set of ASCII characters.
type byteSet int

const (
	isAlpha byteSet = iota
	isAlnum
	isInLimit
	isInResource
	isInEntity
	isInPath
)

// Sets of ASCII characters with one bit for each: digits and dotDash are below 64, letters and
// under are above.
const (
	digits  = 0x3ff << '0'
	letters = 0x3ffffff<<('A'-64) | 0x3ffffff<<('a'-64)
	dotDash = 1<<'.' | 1<<'-'
	under   = 1 << ('_' - 64)
)

var byteSets = [...]struct{ low, high uint64 }{
	isAlpha:      {0, letters},
	isAlnum:      {digits, letters},
	isInLimit:    {digits | dotDash, letters | under},
	isInResource: {digits | dotDash | 1<<'/', letters | under},
	isInEntity:   {digits | dotDash | 1<<':', letters | under | 1<<('@'-64)},
	isInPath:     {digits | dotDash | 1<<':' | 1<<'/', letters | under | 1<<('@'-64)},
}

func (b byteSet) has(c byte) bool {
	switch {
	case c < 64:
		return byteSets[b].low>>c&1 == 1
	case c < 128:
		return byteSets[b].high>>(c-64)&1 == 1
	}
	return false
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}
