package weir

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/clip"
)

// Code says which mistake or trouble an [*Error] is about. A code is itself an error, so that
// errors.Is(err, weir.Ended) asks for it.
type Code string

// The codes. None of them means "denied": a denial is a [*DeniedError].
const (
	// Invalid: the request is malformed; nothing was charged. Do not repeat it.
	Invalid Code = "invalid"
	// UnknownLimit: a cost names a limit that no charged entity has.
	UnknownLimit Code = "unknown limit"
	// NoLimits: nothing is configured for the charged entities.
	NoLimits Code = "no limits configured"
	// NotFound: an entity that something refers to does not exist.
	NotFound Code = "not found"
	// UnknownLease: no live or remembered lease has this ID.
	UnknownLease Code = "unknown lease"
	// Conflict: the lease ID was used with other content.
	Conflict Code = "conflict"
	// Ended: the lease was completed, cancelled or has expired; what it stood for then stays.
	Ended Code = "ended"
	// NeverSatisfiable: the sum of the costs is above what the limit can ever hold.
	NeverSatisfiable Code = "never satisfiable"
	// Unavailable: the store did not answer, so the outcome is unknown. Repeat with the same
	// lease ID.
	Unavailable Code = "unavailable"
	// Superseded: the limits that the server was given are not the ones in force on its store.
	// Nothing was reserved, and no policy admits: another server, or this one with the limits in
	// force, decides. Settlements go on.
	Superseded Code = "superseded"
	// Overloaded: the limiter or its server has no room for the call, so nothing was done: nothing
	// was reserved, and a settlement did not happen. Repeat it after [Error.RetryAfter].
	Overloaded Code = "overloaded"
	// PermissionDenied: the store refused the caller.
	PermissionDenied Code = "permission denied"
	// Unsupported: the store cannot do this.
	Unsupported Code = "unsupported"
)

// Error returns the code's own words.
func (c Code) Error() string { return "weir: " + string(c) }

// Error is every failure but a denial. Field, Value and Reason say what to mend.
type Error struct {
	// Code says which trouble it is; errors.Is matches on it.
	Code Code
	// Field is the part of the input at fault, in the words of the wire: "costs.tpm".
	Field string
	// Value is what stood there, shortened to 64 characters.
	Value string
	// Reason says why it was refused, as the end of a sentence that begins with the field.
	Reason string
	// RetryAfter is how long to wait before trying again, if the code is [Overloaded]; otherwise 0.
	RetryAfter time.Duration
	// Err is the cause, if there is one.
	Err error
}

// Error returns one line: the code, the field with its value, the reason and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("weir: ")
	b.WriteString(string(e.Code))
	switch {
	case e.Field == "":
	case e.Value == "" && e.Code == PermissionDenied: // a secret, which is left out
		b.WriteString(": " + e.Field)
	default:
		fmt.Fprintf(&b, ": %s %q", e.Field, e.Value)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// DeniedError says that a limit said no. Nothing was charged anywhere.
type DeniedError struct {
	// LeaseID is the attempt that was denied; it holds nothing.
	LeaseID LeaseID
	// Limits has the status of every limit judged.
	Limits []LimitStatus
	// RetryAfter is the longest of the exceeded limits' waits: after it the same request would
	// be admitted if nobody else came.
	RetryAfter time.Duration
	// AtLeast is true where the store can only bound RetryAfter from below.
	AtLeast bool
	// Contended is true where the store gave up after losing to other writers, so that no limit
	// need be exceeded.
	Contended bool
}

// Error names the limits that were exceeded and the wait.
func (e *DeniedError) Error() string {
	var names []string
	for _, s := range e.Limits {
		if s.Exceeded && !s.Shadow {
			names = append(names, s.Entity+"/"+s.Resource+" "+s.Limit)
		}
	}
	if e.Contended {
		names = append(names, "other writers")
	}
	if len(names) == 0 {
		names = append(names, "no limit that may deny") // a store's mistake, which should be seen
	}
	return fmt.Sprintf("weir: denied by %s: retry after %v", strings.Join(names, ", "), e.RetryAfter)
}

func invalid(field string, value any, reason string) *Error {
	return NewError(Invalid, field, value, reason)
}

// NewError returns an error about one part of the input. The value is shortened, so that a hostile
// one does not fill a log.
func NewError(code Code, field string, value any, reason string) *Error {
	return &Error{Code: code, Field: field, Value: clip.Text(fmt.Sprint(value)), Reason: reason}
}

// prefixField puts a path in front of the field of every [*Error] joined in err.
func prefixField(prefix string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, prefixField(prefix, e))
		}
		return errors.Join(errs...)
	}
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	c := *e
	c.Field = prefix + "." + e.Field
	return &c
}
