package apijson

import (
	"encoding/json"
	"strconv"

	"github.com/weir-limiter/weir"
)

// Appender is a body that appends itself to a text, byte for byte as [encoding/json] writes it.
type Appender interface {
	AppendJSON(text []byte) []byte
}

// The functions below append members of an object. The argument member is the member's name with
// quotes and colon, and the comma before it if it is not the first: `,"limit":`.

// appendText appends a string. One that needs escapes is left to [encoding/json].
func appendText(text []byte, member, s string) []byte {
	text = append(text, member...)
	for i := range len(s) {
		if !isPlain(s[i]) {
			escaped, err := json.Marshal(s)
			if err != nil {
				panic(err) // every string can be written
			}
			return append(text, escaped...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}

// isPlain reports whether c is one of the ASCII characters that [encoding/json] does not escape.
func isPlain(c byte) bool {
	return ' ' <= c && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

// appendSome appends a string unless it is empty.
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

// appendNonzero appends a number unless it is 0.
func appendNonzero(text []byte, member string, n int64) []byte {
	if n == 0 {
		return text
	}
	return appendNumber(text, member, n)
}

// appendBool appends a boolean.
func appendBool(text []byte, member string, is bool) []byte {
	return strconv.AppendBool(append(text, member...), is)
}

// appendTrue appends a boolean if it is true.
func appendTrue(text []byte, member string, is bool) []byte {
	if !is {
		return text
	}
	return appendBool(text, member, is)
}

// between returns what precedes element i of an array: begin for the first one, otherwise a comma.
func between(i int, begin string) string {
	if i == 0 {
		return begin
	}
	return ","
}

// appendEnd ends an array of n elements. One without elements was not begun.
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
