package apijson

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-limiter/weir/change"
)

// longestVersion bounds the length of a version.
const longestVersion = 128

// ETag returns the entity tag of a version.
func ETag(version string) string { return `"` + version + `"` }

// VersionOf returns the version of a strong entity tag. Apache adds -gzip to the tag of an answer
// that it compresses, and does not take it off again.
func VersionOf(tag string) (version string, ok bool) {
	if len(tag) < 3 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return "", false
	}
	version = strings.TrimSuffix(tag[1:len(tag)-1], "-gzip")
	return version, VersionFault(version) == ""
}

// VersionFault returns why a text cannot be a version in an entity tag, or "".
func VersionFault(version string) string {
	if version == "" || len(version) > longestVersion {
		return fmt.Sprintf("must have from 1 to %d characters", longestVersion)
	}
	for i := range len(version) {
		if c := version[i]; c <= ' ' || c == '"' || c >= 0x7f {
			return "must be printable ASCII without quotes and spaces"
		}
	}
	return ""
}

// Conditions returns what the headers If-Match and If-None-Match require.
func Conditions(header http.Header) (*change.Options, error) {
	const ifMatch, ifNoneMatch = "If-Match", "If-None-Match"
	given, none := header.Values(ifMatch), header.Values(ifNoneMatch)
	switch {
	case len(given) > 0 && len(none) > 0:
		return nil, Invalid(ifNoneMatch, none[0], "cannot be combined with If-Match")
	case len(given) > 1:
		return nil, Invalid(ifMatch, given[1], "is given twice")
	case len(none) > 1:
		return nil, Invalid(ifNoneMatch, none[1], "is given twice")
	case len(none) == 1:
		if none[0] != "*" {
			return nil, Invalid(ifNoneMatch, none[0], "must be *, which requires that there is nothing yet")
		}
		return &change.Options{IfAbsent: true}, nil
	case len(given) == 0:
		return &change.Options{}, nil
	case given[0] == "*":
		return &change.Options{IfVersion: change.AnyVersion}, nil
	}
	version, ok := VersionOf(given[0])
	if !ok {
		return nil, Invalid(ifMatch, given[0],
			`must be * or one ETag as it was answered: at most 128 characters in quotes, not a weak one, and no list`)
	}
	return &change.Options{IfVersion: version}, nil
}

// NoConditions refuses the headers If-Match and If-None-Match where nothing has a version. To
// ignore them would make a change that the caller did not want.
func NoConditions(header http.Header) error {
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if given := header.Values(name); len(given) > 0 {
			return Invalid(name, given[0], "cannot be checked: what this path changes has no version")
		}
	}
	return nil
}
