package apijson

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

// Invalid returns the error of a malformed request.
func Invalid(field string, value any, reason string) *weir.Error {
	return &weir.Error{Code: weir.Invalid, Field: field, Value: Shorten(value), Reason: reason}
}

// Shorten returns the text of a value from outside, with a bounded length so that it cannot fill an
// answer or a log. The result is valid UTF-8.
func Shorten(value any) string {
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

// HTTPError is the refusal of a request before the service is called, with a status that no code of
// weir has.
type HTTPError struct {
	Status int
	fault  *weir.Error
	header http.Header // required by the status, such as Allow
}

// Error returns the text of the fault.
func (e *HTTPError) Error() string { return e.fault.Error() }

// Unwrap returns the fault.
func (e *HTTPError) Unwrap() error { return e.fault }

// Refusal returns an [HTTPError]. The header is a list of alternating names and values.
func Refusal(status int, fault *weir.Error, header ...string) *HTTPError {
	e := &HTTPError{Status: status, fault: fault, header: make(http.Header, len(header)/2)}
	for i := 0; i+1 < len(header); i += 2 {
		e.header.Set(header[i], header[i+1])
	}
	return e
}

// FaultsOf returns the faults that err wraps or joins, in order, but not the causes of faults.
func FaultsOf(err error) []*weir.Error {
	if f, ok := err.(*weir.Error); ok {
		return []*weir.Error{f}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var faults []*weir.Error
		for _, part := range e.Unwrap() {
			faults = append(faults, FaultsOf(part)...)
		}
		return faults
	case interface{ Unwrap() error }:
		return FaultsOf(e.Unwrap())
	}
	return nil
}

// Reword returns err with the fields of its faults renamed by word to the caller's names.
func Reword(err error, word func(*weir.Error) string) error {
	faults := FaultsOf(err)
	if len(faults) == 0 {
		return err
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		reworded := *f
		reworded.Field = word(f)
		errs[i] = &reworded
	}
	return Join(errs)
}

// Join returns nil for no error, a single error as it is, and several joined.
func Join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// CheckText returns an error for a string that [encoding/json] would change.
func CheckText(field, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return Invalid(field, s, "must be valid UTF-8")
}

func checkNames(field string, c weir.Costs) error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if err := CheckText(field+"."+Shorten(name), name); err != nil {
			return err
		}
	}
	return nil
}
