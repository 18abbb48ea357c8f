package apijson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxMembers bounds the members of one object or array, because names are remembered to find
// repeated ones. No request needs as many.
const maxMembers = 1024

// value is a part of a JSON document with valid syntax. It refers to the document's own text, so
// that a hostile document uses no more memory than it is long.
type value struct {
	text  []byte
	of    *value // nil at the top
	name  string // in an object
	index int    // in an array; -1 in an object
}

// parseDocument checks the syntax of a whole document, and that it is UTF-8.
func parseDocument(data []byte) (*value, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, Invalid("body", "", "must be a JSON object, is empty")
	}
	if !utf8.Valid(data) {
		return nil, Invalid("body", string(data), "must be valid UTF-8")
	}
	if !json.Valid(data) {
		return nil, syntaxError(data)
	}
	return &value{text: bytes.TrimSpace(data), index: -1}, nil
}

// syntaxError returns the error of a document that is not JSON.
func syntaxError(data []byte) error {
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	reason := "is no valid JSON: " + fmt.Sprint(err)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		reason += " at byte " + strconv.FormatInt(syntax.Offset, 10)
	}
	return Invalid("body", string(data), reason)
}

// path returns where the value is in the document, for errors: "charges[1].costs.tpm".
func (v *value) path() string {
	switch {
	case v.of == nil:
		return "body"
	case v.index >= 0:
		return v.of.path() + "[" + strconv.Itoa(v.index) + "]"
	case v.of.of == nil:
		return Shorten(v.name)
	}
	return v.of.path() + "." + Shorten(v.name)
}

// what returns the type of the value, with an article.
func (v *value) what() string {
	switch v.text[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// each calls yield with every member of an object, or element of an array, in order, until yield
// returns false. It returns an error for a repeated name or too many members.
func (v *value) each(yield func(member *value) bool) error {
	rest := v.text[1:]
	names := make(map[string]struct{})
	for n := 0; ; n++ {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		if rest[0] == '}' || rest[0] == ']' {
			return nil
		}
		if n == maxMembers {
			return Invalid(v.path(), fmt.Sprint(">", maxMembers), "has too many members")
		}
		member := &value{of: v, index: n}
		if v.text[0] == '{' {
			size := skipValue(rest)
			member.name, member.index = unquote(rest[:size]), -1
			rest = bytes.TrimLeft(rest[size:], " \t\r\n:")
			if _, given := names[member.name]; given {
				return Invalid(member.path(), member.name, "is given twice")
			}
			names[member.name] = struct{}{}
		}
		size := skipValue(rest)
		member.text, rest = rest[:size], rest[size:]
		if !yield(member) {
			return nil
		}
	}
}

// skipValue returns the length of the value at the beginning of text.
func skipValue(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += skipString(text[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // a number ends where its object or array does
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// skipString returns the length of the string at the beginning of text, with its quotes.
func skipString(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// unquote returns the string that is quoted.
func unquote(quoted []byte) string {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(quoted) // cannot happen: the syntax is valid
	}
	return s
}
