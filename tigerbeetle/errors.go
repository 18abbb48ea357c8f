package tigerbeetle

import (
	"context"
	"errors"
	"strconv"

	"github.com/weir-limiter/weir"
)

// unavailable says that the cluster did not answer, or that what it answered is not known.
func unavailable(err error) error {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e
	}
	reason := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "TigerBeetle did not answer in time"
	}
	return &weir.Error{Code: weir.Unavailable, Reason: reason, Err: err}
}

// unexpected says that the cluster answered what it never should.
func unexpected(call, status string) error {
	return &weir.Error{Code: weir.Unavailable, Reason: "TigerBeetle answered " + call + " with " + status}
}

func readOnly() error {
	return &weir.Error{Code: weir.Unsupported, Reason: "the store was opened for reading only"}
}

// tooLarge refuses a request that does not fit one call.
func tooLarge(events, most int) error {
	return &weir.Error{
		Code: weir.Invalid, Field: "charges", Value: strconv.Itoa(events),
		Reason: "are that many events on the ledger, and one call holds " + strconv.Itoa(most),
	}
}

// unsentError is the error of a call that the cluster was never given, so that it cannot be
// carried out.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// isUnsent reports whether a call failed before the cluster was given it.
func isUnsent(err error) bool {
	_, ok := errors.AsType[unsentError](err)
	return ok
}
