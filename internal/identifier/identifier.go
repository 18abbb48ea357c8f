// Package identifier checks the names of entities, resources, limits and namespaces.
package identifier

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The largest lengths of names, in bytes.
const (
	MaxEntity    = 256
	MaxResource  = 128
	MaxLimit     = 64
	MaxNamespace = 256
)

// CheckEntity returns what is wrong with an entity's name; empty if nothing is.
func CheckEntity(s string) string { return checkName(s, MaxEntity) }

// CheckResource returns what is wrong with a resource's name; empty if nothing is.
func CheckResource(s string) string { return checkName(s, MaxResource) }

// CheckLimit returns what is wrong with a limit's name; empty if nothing is. The rules are those of
// the Python library.
func CheckLimit(s string) string {
	switch {
	case s == "wcu":
		return "is reserved"
	case s == "":
		return "must not be empty"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case len(s) > MaxLimit:
		return tooLong(s, MaxLimit)
	case !isLetter(rune(s[0])):
		return fmt.Sprintf("must not begin with %q", firstRune(s))
	}
	for _, c := range s {
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '.' && c != '-' {
			return fmt.Sprintf("must not contain %q", c)
		}
	}
	return ""
}

// CheckNamespace returns what is wrong with the name of a new namespace; empty if nothing is. The
// rules are those that the Python library has for an entity.
func CheckNamespace(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > MaxNamespace:
		return tooLong(s, MaxNamespace)
	}
	for i, c := range s {
		if !isLetter(c) && !isDigit(c) && (i == 0 || !strings.ContainsRune("_.:@-", c)) {
			return "must begin with a letter or a digit and have only letters, digits and _ . : @ -"
		}
	}
	return ""
}

// checkName applies the rules that entities and resources share. A name is whatever the caller's
// world calls a tenant or a model; only what weir's own keys and paths need is kept out.
func checkName(s string, most int) string {
	if isPlain(s, most) {
		return ""
	}
	switch {
	case s == "":
		return "must not be empty"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case len(s) > most:
		return tooLong(s, most)
	}
	for _, c := range s {
		switch {
		case c == '#':
			return "must not contain '#', which separates names"
		case c == ' ':
			return "must not contain ' '"
		case !unicode.IsPrint(c):
			return fmt.Sprintf("must not contain %q, which cannot be printed", c)
		}
	}
	if s == "." || s == ".." || s == "_default_" {
		return "is reserved"
	}
	for _, prefix := range []string{"$SYSTEM", "$RESOURCE:"} {
		if strings.HasPrefix(s, prefix) {
			return fmt.Sprintf("must not begin with %q, which is reserved", prefix)
		}
	}
	return ""
}

// isPlain reports whether s is a name of printable ASCII characters that cannot be reserved. Nearly
// all names are, and each request has some.
func isPlain(s string, most int) bool {
	if s == "" || len(s) > most || s[0] == '.' || s[0] == '_' || s[0] == '$' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return true
}

func isLetter(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c rune) bool { return '0' <= c && c <= '9' }

func tooLong(s string, most int) string {
	return fmt.Sprintf("must have at most %d bytes, has %d", most, len(s))
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}
