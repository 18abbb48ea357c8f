// Package manifest reads limits files: it parses them, finds every mistake in them with its line
// and column, says which limits hide which, compares two configurations, and writes one back. It
// also holds the grammar of a limit on the command line. All of it is pure: the package does no
// I/O.
package manifest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/joined"
)

// DefaultNamespace is the namespace of a file that names none.
const DefaultNamespace = "default"

// formatVersion is the only version of the format so far.
const formatVersion = 1

// Manifest is what a limits file declares. Treat it as unchangeable.
type Manifest struct {
	// Version is that of the format: 1.
	Version int
	// Namespace is the world that the limits belong to. Default: [DefaultNamespace].
	Namespace string
	// Definitions are the file's limits and entities, normalized.
	Definitions *weir.Definitions

	file string
	at   map[string]position // where each part stands in the file, by its path
}

// Parse reads a limits file of at most 4 MiB. The name is for messages only. A file with mistakes
// gives no manifest but all of them, joined in the order of the file: each is an [*Error] around a
// [*weir.Error] with code [weir.Invalid]; beyond a thousand, only their number is told. Where the
// text is not YAML, only that is told: nothing can be said of what such a file declares.
func Parse(name string, data []byte) (*Manifest, error) {
	found := &mistakes{file: name}
	text := checkText(data, found)
	if found.none() {
		root, whole := parseTree(text, found)
		if whole {
			m := decode(root, found)
			if found.none() {
				m.file = name
				return m, nil
			}
		}
	}
	return nil, found.err()
}

// Locate puts the place in the file on errors about the manifest's definitions, such as a store's
// refusal of a kind of limit: every [*weir.Error] joined in err whose Field is a path of the file
// ("resources.gpt-4o.limits.rpm", or below it) comes back in an [*Error]; others as they are.
func (m *Manifest) Locate(err error) error {
	var located []error
	for _, e := range joined.Errors(err) {
		we, ok := errors.AsType[*weir.Error](e)
		at, known := position{}, false
		if ok {
			at, known = m.find(we.Field)
		}
		if known {
			e = &Error{File: m.file, Line: at.line, Column: at.column, Err: e}
		}
		located = append(located, e)
	}
	return errors.Join(located...)
}

// CheckNamespace refuses a file that names another namespace than the one its limits are for, in an
// [*Error] around a [*weir.Error] with code [weir.Invalid]. A file that names none is for any.
func (m *Manifest) CheckNamespace(namespace string) error {
	at, named := m.at["namespace"]
	if !named || m.Namespace == namespace {
		return nil
	}
	return &Error{File: m.file, Line: at.line, Column: at.column, Err: &weir.Error{
		Code: weir.Invalid, Field: "namespace", Value: m.Namespace,
		Reason: "is not the store's, which is " + strconv.Quote(namespace),
	}}
}

// find returns where the longest part of a path that the file has stands.
func (m *Manifest) find(path string) (position, bool) {
	for path != "" {
		if at, ok := m.at[path]; ok {
			return at, true
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return position{}, false
}
