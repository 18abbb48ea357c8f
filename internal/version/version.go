// Package version makes the version of a content: an opaque text that changes with it.
package version

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// hashBytes is the number of bytes of a hash that a version has.
const hashBytes = 12

// Of returns the version of a value, which must have JSON.
func Of(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // limits and normal metadata have JSON
	}
	return OfText(text)
}

// OfText returns the version of a text.
func OfText(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:hashBytes])
}
