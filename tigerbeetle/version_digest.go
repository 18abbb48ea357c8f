//go:build cgo

package tigerbeetle

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// digestOf stands for definitions on the cluster. What they leave out is not in it, so that two releases of
// weir of which one knows more fields agree about a file that uses none of them.
func digestOf(d *weir.Definitions) (tb.Uint128, error) {
	text, err := json.Marshal(d) //nolint:musttag // Only weir reads it, and the names of the fields stay.
	if err != nil {
		return tb.Uint128{}, err
	}
	var fields any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a float has too few digits
	if err := decoder.Decode(&fields); err != nil {
		return tb.Uint128{}, err
	}
	if text, err = json.Marshal(withoutZeros(fields)); err != nil {
		return tb.Uint128{}, err
	}
	return number(sha256.Sum256(text)), nil
}

// withoutZeros drops the fields that say nothing. Empty lists and objects stay: to declare something
// without limits is not the same as not to declare it.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			switch field {
			case nil, "", false, json.Number("0"):
				delete(v, name)
			default:
				v[name] = withoutZeros(field)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
	}
	return v
}
