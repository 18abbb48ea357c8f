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
	extra := "_.-:@"
	if slash {
		extra += "/"
	}
	return checkIdentifier(s, maxEntityLen, isAlnum, extra)
}

// checkResource returns what is wrong with a resource's name, or nothing.
func checkResource(s string) string {
	return checkIdentifier(s, maxResourceLen, isAlpha, "_.-/")
}

// checkLimitName returns what is wrong with a limit's name, or nothing.
func checkLimitName(s string) string {
	if s == "wcu" {
		return "is reserved"
	}
	return checkIdentifier(s, maxLimitLen, isAlpha, "_.-")
}

func checkIdentifier(s string, limit int, first func(byte) bool, extra string) string {
	switch {
	case s == "":
		return "must not be empty"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case len(s) > limit:
		return fmt.Sprintf("must have at most %d characters, has %d", limit, len(s))
	case !first(s[0]):
		return fmt.Sprintf("must not begin with %q", firstRune(s))
	}
	for i := 1; i < len(s); i++ {
		if !isAlnum(s[i]) && strings.IndexByte(extra, s[i]) < 0 {
			return fmt.Sprintf("must not contain %q", firstRune(s[i:]))
		}
	}
	return ""
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func isAlpha(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isAlnum(c byte) bool { return isAlpha(c) || '0' <= c && c <= '9' }

func sortLimits(limits []Limit) []Limit {
	slices.SortFunc(limits, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	return limits
}
