package limiter

import "github.com/weir-limiter/weir"

// invalid returns an error about one part of the input.
func invalid(field string, value any, reason string) *weir.Error {
	return weir.NewError(weir.Invalid, field, value, reason)
}
