//go:build cgo

package client

import (
	"context"
	"errors"
	"strconv"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// Unavailable wraps an error as [weir.Unavailable]: the cluster did not answer, or the outcome of
// the call is unknown. IsUnsent still recognizes the error.
func Unavailable(err error) error {
	e, ok := errors.AsType[*weir.Error](err)
	if !ok {
		e = &weir.Error{Code: weir.Unavailable, Reason: err.Error(), Err: err}
		if errors.Is(err, context.DeadlineExceeded) {
			e.Reason = "TigerBeetle did not answer in time"
		}
	}
	if IsUnsent(err) {
		return unsentError{e}
	}
	return e
}

// TooLarge returns the error for a request that does not fit one call.
func TooLarge(events, most int) error {
	return &weir.Error{
		Code: weir.Invalid, Field: "charges", Value: strconv.Itoa(events),
		Reason: "is the number of events that this takes on the ledger, and one call has at most " + strconv.Itoa(most),
	}
}

// unsentError is the error of a call that was never given to the cluster, so that it cannot be
// carried out.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// IsUnsent reports whether a call failed before it was given to the cluster.
func IsUnsent(err error) bool {
	_, ok := errors.AsType[unsentError](err)
	return ok
}

// explain turns a native error into one that says what it means and what to do about it.
func explain(err error) error {
	e := &weir.Error{Code: weir.Unavailable, Reason: "TigerBeetle's client failed: " + err.Error(), Err: err}
	switch {
	case errors.Is(err, tb.ErrClientReleaseTooHigh):
		e.Reason = "the TigerBeetle client " + release + " is newer than the server: upgrade the server"
	case errors.Is(err, tb.ErrClientReleaseTooLow):
		e.Reason = "the TigerBeetle server does not accept a client as old as " + release + ": upgrade weir"
	case errors.Is(err, tb.ErrClientEvicted):
		e.Reason = "the cluster has ended this client's session, as it does with the oldest one when there " +
			"are too many; a new session is being opened"
	case errors.Is(err, tb.ErrClientClosed):
		e.Reason = "the session with the cluster has ended; a new session is being opened"
	case errors.Is(err, tb.ErrSystemResources):
		e.Reason = "TigerBeetle's client could not be started: it needs io_uring, which this system lacks " +
			"or forbids, or the system is out of memory or of files"
	case errors.Is(err, tb.ErrInvalidAddress):
		e.Code, e.Field, e.Reason = weir.Invalid, "store.addresses",
			"are not addresses that TigerBeetle accepts"
	case errors.Is(err, tb.ErrAddressLimitExceeded):
		e.Code, e.Field, e.Reason = weir.Invalid, "store.addresses", "are more than a cluster can have"
	}
	return e
}

// release is the release of TigerBeetle's client.
const release = "0.17.9"
