package httpapi

import "github.com/weir-limiter/weir"

// Documented is what the wire has words for.
type Documented interface {
	*weir.Lease | *weir.DeniedError | *weir.Receipt | *weir.Explanation | []weir.LimitStatus | []weir.Limit
}

// Document returns a value as the wire says it, for [encoding/json]: the body that a server would
// answer with, so that a program which prints it and one that reads the wire agree. Limits are an
// object by name.
func Document[T Documented](v T) any {
	switch v := any(v).(type) {
	case *weir.Lease:
		return leaseBodyOf(v)
	case *weir.DeniedError:
		return problemOf(v)
	case *weir.Receipt:
		return receiptBodyOf(v)
	case *weir.Explanation:
		return explanationBodyOf(v)
	case []weir.LimitStatus:
		return limitsStatusBody{statusBodies(v)}
	case []weir.Limit:
		return limitBodies(v)
	}
	return nil // there are no other types
}
