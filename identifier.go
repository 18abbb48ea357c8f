package weir

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// DefaultResource is the pseudo-resource under which an entity's limits for every resource without
// limits of its own are kept.
const DefaultResource = "_default_"

// Bounds of identifiers, from the tables that weir shares with the Python library.
const (
	maxEntityLen   = 256
	maxResourceLen = 64
	maxLimitLen    = 64
)

// checkSubject refuses a malformed entity or resource.
func checkSubject(entity, resource string, slash bool) error {
	if reason := checkEntity(entity, slash); reason != "" {
		return invalid("entity", entity, reason)
	}
	if reason := checkResource(resource); reason != "" {
		return invalid("resource", resource, reason)
	}
	return nil
}

// checkEntity returns what is wrong with an entity's name, or nothing.
func checkEntity(s string, slash bool) string {
	if slash {
		return checkIdentifier(s, maxEntityLen, isAlnum, isInPath)
	}
	return checkIdentifier(s, maxEntityLen, isAlnum, isInEntity)
}

// checkResource returns what is wrong with a resource's name, or nothing.
func checkResource(s string) string {
	return checkIdentifier(s, maxResourceLen, isAlpha, isInResource)
}

// checkLimitName returns what is wrong with a limit's name, or nothing.
func checkLimitName(s string) string {
	if s == "wcu" {
		return "is reserved"
	}
	return checkIdentifier(s, maxLimitLen, isAlpha, isInLimit)
}

func checkIdentifier(s string, limit int, first, rest byteSet) string {
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

// The characters below and above 64, one bit for each.
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

func sortLimits(limits []Limit) []Limit {
	slices.SortFunc(limits, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	return limits
}
