// Package metadata has the rules for the metadata of an entity: a map of JSON values. weir's own
// commands write texts only; the Python library may have written other values, which are kept
// exactly. It has no state.
//
// The normal form of a value is nil, a string, a bool, an int64, a [json.Number], a
// map[string]any or a []any of such values. A number is an int64 if its text is that of one.
package metadata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of metadata.
const (
	// MaxBytes is the largest size of metadata as JSON, in bytes.
	MaxBytes = 64 << 10
	// MaxName is the largest size of an entity's name, in bytes.
	MaxName = 1024
	// maxDepth is how deep maps and lists may be nested in the metadata. DynamoDB allows one level
	// more, but the audit has the metadata within the details of an event.
	maxDepth = 29
	// maxDepthRead is how deep another program may have nested them.
	maxDepthRead = 30
)

// CheckName returns why a text cannot be the name of an entity for people, or "".
func CheckName(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "must be valid UTF-8"
	case len(name) > MaxName:
		return fmt.Sprintf("has %d bytes: it can have at most %d", len(name), MaxName)
	case strings.ContainsFunc(name, isControl):
		return "must not have control characters"
	}
	return ""
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// Normalize returns a copy in normal form; nil if there are no entries. If something is wrong,
// path is the part that is, below the metadata, and reason says why.
func Normalize(m map[string]any) (out map[string]any, path, reason string) {
	if len(m) == 0 {
		return nil, "", ""
	}
	v, path, reason := normalize(m, 0, maxDepth)
	if reason != "" {
		return nil, path, reason
	}
	out = v.(map[string]any)
	if n := len(JSON(out)); n > MaxBytes {
		return nil, "", fmt.Sprintf("has %d bytes as JSON: it can have at most %d", n, MaxBytes)
	}
	return out, "", ""
}

// Plain is [Normalize] without the bounds, for metadata that another program may have written.
func Plain(m map[string]any) (out map[string]any, path, reason string) {
	v, path, reason := normalize(m, 0, maxDepthRead)
	if reason != "" {
		return nil, path, reason
	}
	return v.(map[string]any), "", ""
}

// normalize returns a value in normal form, or the path of what is wrong in it, which begins with
// a dot or a bracket unless it is the value itself. most bounds the depth of maps and lists.
func normalize(value any, depth, most int) (out any, path, reason string) {
	switch value.(type) {
	case map[string]any, []any:
		if depth > most {
			return nil, "", fmt.Sprintf("is nested deeper than %d levels", most)
		}
	}
	switch v := value.(type) {
	case nil, bool, int64:
		return v, "", ""
	case int:
		return int64(v), "", ""
	case string:
		if !utf8.ValidString(v) {
			return nil, "", "must be valid UTF-8"
		}
		return v, "", ""
	case json.Number:
		return number(v)
	case map[string]any:
		m := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "" || !utf8.ValidString(name) {
				return nil, "", "has a name that is empty or not valid UTF-8"
			}
			if m[name], path, reason = normalize(v[name], depth+1, most); reason != "" {
				return nil, "." + name + path, reason
			}
		}
		return m, "", ""
	case []any:
		list := make([]any, len(v))
		for i := range v {
			if list[i], path, reason = normalize(v[i], depth+1, most); reason != "" {
				return nil, "[" + strconv.Itoa(i) + "]" + path, reason
			}
		}
		return list, "", ""
	}
	return nil, "", fmt.Sprintf("is a %T: it must be a string, a bool, a whole number, a json.Number, nil, "+
		"or a map or slice of them", value)
}

// number returns a number in normal form.
func number(n json.Number) (out any, path, reason string) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil && strconv.FormatInt(i, 10) == string(n) {
		return i, "", ""
	}
	first := byte(0)
	if n != "" {
		first = n[0]
	}
	if first != '-' && (first < '0' || first > '9') || !json.Valid([]byte(n)) {
		return nil, "", fmt.Sprintf("is %q: it is not a number", string(n))
	}
	return n, "", ""
}

// Parse parses an object of JSON into the normal form. It does not check the bounds.
func Parse(text []byte) (map[string]any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("is not an object of JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something behind the object")
	}
	if m == nil {
		return nil, errors.New("is null: it must be an object")
	}
	if path := repeated(json.NewDecoder(bytes.NewReader(text))); path != "" {
		return nil, errors.New(path + " is given twice")
	}
	v, path, reason := normalize(m, 0, maxDepthRead)
	if reason != "" {
		return nil, errors.New(path + " " + reason)
	}
	return v.(map[string]any), nil
}

// repeated returns the path of a name that the next value of JSON, which is valid, has twice, or
// "".
func repeated(d *json.Decoder) string {
	open, err := d.Token()
	names := make(map[string]bool)
	for i := 0; err == nil && (open == json.Delim('{') || open == json.Delim('[')) && d.More(); i++ {
		at := "[" + strconv.Itoa(i) + "]"
		if open == json.Delim('{') {
			token, err := d.Token()
			name, ok := token.(string)
			if at = "." + name; err != nil || !ok || names[name] {
				return at
			}
			names[name] = true
		}
		if path := repeated(d); path != "" {
			return at + path
		}
	}
	if open == json.Delim('{') || open == json.Delim('[') {
		_, _ = d.Token() // the end
	}
	return ""
}

// ParseValue parses one value of JSON into the normal form.
func ParseValue(text []byte) (any, error) {
	const name = "value"
	m, err := Parse(slices.Concat([]byte(`{"`+name+`":`), text, []byte("}")))
	if err != nil {
		return nil, errors.New(strings.TrimSpace(strings.TrimPrefix(err.Error(), "."+name)))
	}
	return m[name], nil
}

// JSON returns a value in normal form as JSON. Names are in order, and no character is escaped
// that need not be.
func JSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the normal form has JSON
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// Text returns a value for people: a text as it is, and any other value as JSON.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return JSON(v)
}

// Split returns the entries that are texts, and the others.
func Split(m map[string]any) (texts map[string]string, others map[string]any) {
	texts, others = make(map[string]string), make(map[string]any)
	for name, value := range m {
		if s, ok := value.(string); ok {
			texts[name] = s
		} else {
			others[name] = value
		}
	}
	return texts, others
}

// Equal reports whether two values in normal form are the same. Nil and an empty map are, and
// numbers of the same value, however they are written.
func Equal(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || JSON(a) == JSON(b) || JSON(withNumberForms(a)) == JSON(withNumberForms(b))
}

// withNumberForms returns a copy of a value with all numbers in one form.
func withNumberForms(value any) any {
	switch v := value.(type) {
	case int64:
		return json.Number(NumberForm(strconv.FormatInt(v, 10)))
	case json.Number:
		return json.Number(NumberForm(string(v)))
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			m[name] = withNumberForms(member)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = withNumberForms(v[i])
		}
		return list
	}
	return value
}

// Clone returns a copy of metadata in normal form.
func Clone(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	return clone(m).(map[string]any)
}

func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, value := range v {
			m[name] = clone(value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = clone(v[i])
		}
		return list
	}
	return value
}
