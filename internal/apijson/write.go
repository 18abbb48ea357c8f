package apijson

import (
	"encoding/json"
	"fmt"
)

// Write returns the JSON of a request's body. It cannot fail for strings and whole numbers.
func Write(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, Invalid("body", "", "cannot be written as JSON: "+err.Error())
	}
	return text, nil
}

// Read reads an answer. Members that are not known are skipped: a newer server may have added them.
func Read[T any](body []byte) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return out, nil
}
