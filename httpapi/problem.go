package httpapi

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
)

const (
	problemType = "application/problem+json"
	// quotaExceeded is the registered type of a denial.
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	codePrefix    = "urn:weir:problem:"
	plainProblem  = "about:blank"
)

// problemOf is an error as the wire says it. The causes of faults, and errors that are none of
// weir's, stay inside: they may name what callers need not know.
func problemOf(err error) *problemBody {
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		return denialOf(denied)
	}
	faults := faultsOf(err)
	if len(faults) == 0 {
		faults = []*weir.Error{{Code: weir.Unavailable, Reason: "the service failed"}}
	}
	first := faults[0]
	p := &problemBody{
		Type:  codePrefix + strings.ReplaceAll(string(first.Code), " ", "-"),
		Title: titleOf(first.Code), Status: statusOf(first.Code), Detail: detailOf(first),
		Code: first.Code, Field: first.Field, Value: first.Value, Reason: first.Reason,
	}
	if p.Status == http.StatusInternalServerError {
		p.Status = http.StatusServiceUnavailable // no code of weir's: nobody knows the outcome
	}
	if plain, ok := errors.AsType[*httpError](err); ok {
		p.Type, p.Title, p.Status = plainProblem, http.StatusText(plain.status), plain.status
	}
	if len(faults) > 1 {
		p.Detail += " (and " + strconv.Itoa(len(faults)-1) + " more)"
		for _, f := range faults[:min(len(faults), maxMistakes)] {
			p.Errors = append(p.Errors, mistakeBody{f.Code, f.Field, f.Value, f.Reason})
		}
	}
	return p
}

// denialOf is a denial as the wire says it.
func denialOf(e *weir.DeniedError) *problemBody {
	p := &problemBody{
		Type: quotaExceeded, Title: "Denied by a limit", Status: http.StatusTooManyRequests,
		Detail:  strings.TrimPrefix(e.Error(), "weir: "),
		Allowed: new(false), RetryAfterMS: new(ceilUnits(e.RetryAfter, time.Millisecond)),
		AtLeast: e.AtLeast, Contended: e.Contended, Limits: statusBodies(e.Limits),
		ViolatedPolicies: violatedPolicies(e.Limits),
	}
	if !e.LeaseID.IsZero() {
		p.LeaseID = e.LeaseID.String()
	}
	return p
}

// detailOf is one line for people, without the cause.
func detailOf(f *weir.Error) string {
	shown := *f
	shown.Err = nil
	return strings.TrimPrefix(shown.Error(), "weir: ")
}

func titleOf(c weir.Code) string {
	switch c {
	case weir.Invalid:
		return "The request is malformed"
	case weir.UnknownLimit:
		return "A cost names a limit that does not exist"
	case weir.NoLimits:
		return "Nothing is configured"
	case weir.NotFound:
		return "Not found"
	case weir.UnknownLease:
		return "The lease is not known"
	case weir.Conflict:
		return "In conflict with what is there"
	case weir.Ended:
		return "The lease has ended"
	case weir.NeverSatisfiable:
		return "More than the limit can ever hold"
	case weir.Unavailable:
		return "The store did not answer"
	case weir.Superseded:
		return "The server's limits are not the ones in force"
	case weir.Overloaded:
		return "Too busy, nothing was reserved"
	case weir.PermissionDenied:
		return "Not permitted"
	case weir.Unsupported:
		return "The store cannot do this"
	}
	return "Failed"
}

// headerOf adds what an error asks of the header: a denial Retry-After, a refusal what its status
// goes with.
func headerOf(h http.Header, err error) {
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		seconds := max(1, ceilUnits(denied.RetryAfter, time.Second))
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if plain, ok := errors.AsType[*httpError](err); ok {
		maps.Copy(h, plain.header)
	}
	if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Overloaded {
		seconds := max(1, ceilUnits(e.RetryAfter, time.Second))
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
}
