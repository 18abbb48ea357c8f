package apijson

import (
	"encoding/json"
	"strconv"

	"github.com/weir-limiter/weir"
)

// What follows appends members of an object to a JSON text, as [encoding/json] writes them. A
// member is its name with quotes and colon, and the comma before it if it is not the first:
// `,"limit":`.

// appendText appends a string. One that needs escapes is left to [encoding/json].
func appendText(text []byte, member, s string) []byte {
	text = append(text, member...)
	for i := range len(s) {
		if !isPlain(s[i]) {
			escaped, err := json.Marshal(s)
			if err != nil {
				panic(err) // there is no string that cannot be written
			}
			return append(text, escaped...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}

// isPlain is whether [encoding/json] writes a character as it is; not all of those are here.
func isPlain(c byte) bool {
	return ' ' <= c && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// appendSome appends a string, and nothing for an empty one.
func appendSome(text []byte, member, s string) []byte {
	if s == "" {
		return text
	}
	return appendText(text, member, s)
}

// appendNumber appends a number.
func appendNumber(text []byte, member string, n int64) []byte {
	return strconv.AppendInt(append(text, member...), n, 10)
}

// appendNonzero appends a number, and nothing for 0.
func appendNonzero(text []byte, member string, n int64) []byte {
	if n == 0 {
		return text
	}
	return appendNumber(text, member, n)
}

// appendBool appends a truth value.
func appendBool(text []byte, member string, is bool) []byte {
	return strconv.AppendBool(append(text, member...), is)
}

// appendTrue appends a member that is true, and nothing otherwise.
func appendTrue(text []byte, member string, is bool) []byte {
	if !is {
		return text
	}
	return appendBool(text, member, is)
}

// between is what stands before element i of an array: its beginning, or a comma.
func between(i int, begin string) string {
	if i == 0 {
		return begin
	}
	return ","
}

// appendEnd ends an array of n elements; one without any was never begun.
func appendEnd(text []byte, n int) []byte {
	if n == 0 {
		return text
	}
	return append(text, ']')
}

// appendLeaseID appends an ID, which needs no escapes.
func appendLeaseID(text []byte, member string, id weir.LeaseID) []byte {
	text = append(append(text, member...), '"')
	text, _ = id.AppendText(text) // it never fails
	return append(text, '"')
}

// Appender is a body that writes itself, byte for byte as [encoding/json] would.
type Appender interface {
	AppendJSON(text []byte) []byte
}
