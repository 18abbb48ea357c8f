// Package manifest reads and writes limits files. It finds every mistake in a file with its line
// and column, says which limits hide which, and compares two configurations. It also has the
// grammar of a limit on the command line. The package does no I/O and has no state.
//
// [Parse] reads a file in three steps. The text is checked and split into the tokens of YAML
// (text.go, scan.go). The tokens become a tree of mappings and scalars, the part of YAML that a
// limits file uses (tree.go, mapping.go, node.go). The tree is decoded into a [Manifest], which has
// the definitions and the position of each part in the file (decode.go, decode_limit.go,
// parents.go). A step records its mistakes and continues if it can, so that all of them are
// reported, not only the first. The rules for names and limits are those of package weir: decoding
// calls [weir.Limit.Validate] and [weir.Definitions.Normalize] instead of repeating them.
//
// [Format] writes definitions as a file, [Diff] returns the changes from one configuration to
// another, and [Hidden] finds the limits that do not apply because a stronger level has limits.
// [ParseLimit] and [FormatLimit] are for a limit on the command line.
package manifest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/joined"
)

// DefaultNamespace is the namespace of a file that does not name one.
const DefaultNamespace = "default"

// formatVersion is the only version of the format so far.
const formatVersion = 1

// Manifest is the value of a limits file. Do not change it.
type Manifest struct {
	// Version is the version of the format: 1.
	Version int
	// Namespace is the namespace of the limits. Default: [DefaultNamespace].
	Namespace string
	// Definitions are the file's limits and entities, normalized.
	Definitions *weir.Definitions

	file string
	at   map[string]position // position of each part, by its path
}

// Parse parses a limits file of at most 4 MiB. The name is used only in messages. If the file has
// mistakes, Parse returns no manifest but all mistakes, joined in the order of the file. Each is an
// [*Error] around a [*weir.Error] with code [weir.Invalid]. Beyond a thousand mistakes, Parse
// reports only their number. If the text is not YAML, it reports only that, because it cannot know
// what the file declares.
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

// Locate adds positions in the file to errors about the manifest's definitions, such as a store's
// refusal of a kind of limit. Every [*weir.Error] joined in err whose Field is a path of the file
// ("resources.gpt-4o.limits.rpm", or something below it) is returned in an [*Error]. Other errors
// are returned unchanged.
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

// CheckNamespace returns an error if the file names another namespace than the given one: an
// [*Error] around a [*weir.Error] with code [weir.Invalid]. A file that names no namespace fits
// any.
func (m *Manifest) CheckNamespace(namespace string) error {
	at, named := m.at["namespace"]
	if !named || m.Namespace == namespace {
		return nil
	}
	return &Error{File: m.file, Line: at.line, Column: at.column, Err: &weir.Error{
		Code: weir.Invalid, Field: "namespace", Value: m.Namespace,
		Reason: "is not the store's namespace, which is " + strconv.Quote(namespace),
	}}
}

// Has reports whether the file has a field or an entry at a path, such as "system.on_unavailable". A
// default that the file leaves out is not there.
func (m *Manifest) Has(path string) bool {
	_, ok := m.at[path]
	return ok
}

// find returns the position of the longest prefix of a path that the file has.
func (m *Manifest) find(path string) (position, bool) {
	for path != "" {
		if at, ok := m.at[path]; ok {
			return at, true
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return position{}, false
}
