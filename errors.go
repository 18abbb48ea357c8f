package weir

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-limiter/weir/internal/clip"
)

// Code classifies an [*Error]. A code is itself an error, so that errors.Is(err, weir.Ended)
// reports whether err has the code.
type Code string

// The codes. None of them means that a limit denied the request: that is a [*DeniedError].
const (
	// Invalid means that the request is malformed; nothing was charged. Do not repeat it.
	Invalid Code = "invalid"
	// UnknownLimit means that a cost names a limit that no charged entity has.
	UnknownLimit Code = "unknown limit"
	// NoLimits means that nothing is configured for the charged entities.
	NoLimits Code = "no limits configured"
	// NotFound means that an entity or a resource that something refers to does not exist.
	NotFound Code = "not found"
	// UnknownLease means that no live or remembered lease has this ID.
	UnknownLease Code = "unknown lease"
	// Conflict means that the lease ID was used with other content.
	Conflict Code = "conflict"
	// Ended means that the lease was completed or cancelled or has expired, and no longer changes.
	Ended Code = "ended"
	// NeverSatisfiable means that the sum of the costs is above what the limit can ever hold.
	NeverSatisfiable Code = "never satisfiable"
	// Unavailable means that the store did not answer, so the outcome is unknown. Repeat with the same
	// lease ID.
	Unavailable Code = "unavailable"
	// Superseded means that the definitions that the server was given are not the ones in force on its
	// store. Nothing was reserved, whatever the policy is. A server that has the definitions in force
	// can reserve; settlements work on this one too.
	Superseded Code = "superseded"
	// Overloaded means that the limiter or its server has no capacity for the call, and did nothing.
	// Repeat the call after [Error.RetryAfter].
	Overloaded Code = "overloaded"
	// PermissionDenied means that the store refused the caller.
	PermissionDenied Code = "permission denied"
	// Unsupported means that the store does not support what the call asks for.
	Unsupported Code = "unsupported"
)

// Error returns the code's text.
func (c Code) Error() string { return "weir: " + string(c) }

// Error is any failure except a denial. Field, Value and Reason say what to correct.
type Error struct {
	// Code classifies the error; errors.Is compares its target with the code.
	Code Code
	// Field is the part of the input that is wrong, as the HTTP API names it: "costs.tpm".
	Field string
	// Value is the value of that part, shortened to 64 characters.
	Value string
	// Reason says why the value was refused, as the end of a sentence that begins with the field.
	Reason string
	// RetryAfter is how long to wait before repeating the call, if the code is [Overloaded].
	RetryAfter time.Duration
	// Err is the cause; nil if there is none.
	Err error
}

// Error returns the code, the field with its value, the reason and the cause in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("weir: ")
	b.WriteString(string(e.Code))
	switch {
	case e.Field == "":
	case e.Value == "" && e.Code == PermissionDenied: // the value is a secret and left out
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

// DeniedError is a denial: at least one limit cannot hold what was asked for. Nothing was charged.
type DeniedError struct {
	// LeaseID is the ID of the denied attempt, which holds nothing.
	LeaseID LeaseID
	// Charges say who asked: the entity and resource of each charge, in the request's order. A limit
	// that denied may be another entity's, such as a parent's.
	Charges []Subject
	// Limits has the status of every limit that the request was judged by.
	Limits []LimitStatus
	// RetryAfter is the longest wait of the limits that denied, as [LimitStatus.ComeAgain] has it.
	// After it the same request would be admitted if there were no other requests or, if a limit
	// has a [LimitStatus.RetryLikely], it is likely to be admitted.
	RetryAfter time.Duration
	// AtLeast reports that RetryAfter is a lower bound, because the store cannot compute the exact
	// time.
	AtLeast bool
	// Contended reports that the store gave up after other writers had won every retry. Then it is
	// possible that no limit is exceeded.
	Contended bool
}

// Error names the limits that denied, who asked unless that is whose limits they are, and the wait.
func (e *DeniedError) Error() string {
	var names []string
	own := len(e.Charges) <= 1
	for _, s := range e.Limits {
		if s.Exceeded && !s.Shadow {
			names = append(names, s.Entity+"/"+s.Resource+" "+s.Limit)
			own = own && slices.Contains(e.Charges, Subject{Entity: s.Entity, Resource: s.Resource})
		}
	}
	own = own && len(names) > 0 || len(e.Charges) == 0
	if e.Contended {
		names = append(names, "other writers")
	}
	if len(names) == 0 {
		names = append(names, "no limit that may deny") // a defect of the store, which should be visible
	}
	by := strings.Join(names, ", ")
	if !own {
		by += ", asked by " + askedBy(e.Charges)
	}
	return fmt.Sprintf("weir: denied by %s: retry after %v", by, e.RetryAfter)
}

// askedBy names the subjects of charges, each once.
func askedBy(charges []Subject) string {
	var names []string
	for i, s := range charges {
		if !slices.Contains(charges[:i], s) {
			names = append(names, s.Entity+"/"+s.Resource)
		}
	}
	return strings.Join(names, ", ")
}

func invalid(field string, value any, reason string) *Error {
	return NewError(Invalid, field, value, reason)
}

// NewError returns an error about one part of the input. It shortens the value, so that a hostile
// one does not fill a log.
func NewError(code Code, field string, value any, reason string) *Error {
	return &Error{Code: code, Field: field, Value: clip.Text(fmt.Sprint(value)), Reason: reason}
}

// prefixField adds a prefix to the field of every [*Error] joined in err.
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
