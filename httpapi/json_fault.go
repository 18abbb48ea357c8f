package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-limiter/weir"
)

// invalid makes the error of a malformed request.
func invalid(field string, value any, reason string) *weir.Error {
	return &weir.Error{Code: weir.Invalid, Field: field, Value: shorten(value), Reason: reason}
}

// shorten keeps a hostile value from filling an answer or a log, as the limiter's errors do. It is
// valid UTF-8 whatever came in.
func shorten(value any) string {
	s, ok := value.(string)
	if !ok {
		s = fmt.Sprint(value)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	const limit = 64
	if len(s) <= limit {
		return s
	}
	cut := strings.ToValidUTF8(s[:limit], "")
	return cut + "… (" + strconv.Itoa(len(s)) + " bytes)"
}

// httpError is a refusal that HTTP has a status of its own for: the request never reached the
// service.
type httpError struct {
	status int
	fault  *weir.Error
	header http.Header // what the status asks for besides, such as Allow
}

// Error returns the fault's line.
func (e *httpError) Error() string { return e.fault.Error() }

// Unwrap returns the fault.
func (e *httpError) Unwrap() error { return e.fault }

// refusal makes an httpError; header has names and values in turn.
func refusal(status int, fault *weir.Error, header ...string) *httpError {
	e := &httpError{status: status, fault: fault, header: make(http.Header, len(header)/2)}
	for i := 0; i+1 < len(header); i += 2 {
		e.header.Set(header[i], header[i+1])
	}
	return e
}

// faultsOf returns the faults in an error, in order, without those that are only another's cause.
func faultsOf(err error) []*weir.Error {
	if f, ok := err.(*weir.Error); ok {
		return []*weir.Error{f}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var faults []*weir.Error
		for _, part := range e.Unwrap() {
			faults = append(faults, faultsOf(part)...)
		}
		return faults
	case interface{ Unwrap() error }:
		return faultsOf(e.Unwrap())
	}
	return nil
}

// reword puts the caller's words for the fields of an error's faults.
func reword(err error, word func(*weir.Error) string) error {
	faults := faultsOf(err)
	if len(faults) == 0 {
		return err
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		reworded := *f
		reworded.Field = word(f)
		errs[i] = &reworded
	}
	return join(errs)
}

// join returns a single error as it is, and several as one; nil for none.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// checkText refuses what JSON would put something else for.
func checkText(field, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return invalid(field, s, "must be valid UTF-8")
}

func checkNames(field string, c weir.Costs) error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if err := checkText(field+"."+shorten(name), name); err != nil {
			return err
		}
	}
	return nil
}
