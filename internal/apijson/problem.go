package apijson

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
)

// MaxMistakes bounds how many mistakes of one request are reported.
const MaxMistakes = 16

const (
	// ProblemType is the Content-Type of a problem.
	ProblemType = "application/problem+json"
	// quotaExceeded is the registered type of a denial.
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	codePrefix    = "urn:weir:problem:"
	plainProblem  = "about:blank"
)

// Problem is the body of every answer except a success (RFC 9457), with the members of a
// [weir.Error] or of a [weir.DeniedError]. In a denial, allowed is false; no other problem has that
// member.
type Problem struct {
	// Type, Title, Status and Detail are those of RFC 9457.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	Code   weir.Code `json:"code,omitempty"`
	Field  string    `json:"field,omitempty"`
	Value  string    `json:"value,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Errors []Mistake `json:"errors,omitempty"` // only if there are several

	// These are of a conflict about a version: the current one, and the last change in the audit.
	CurrentVersion string `json:"current_version,omitempty"`
	LastChange     string `json:"last_change,omitempty"`
	ChangedBy      string `json:"changed_by,omitempty"`
	ChangedAt      string `json:"changed_at,omitempty"`

	Allowed      *bool         `json:"allowed,omitempty"`
	LeaseID      string        `json:"lease_id,omitempty"`
	Charges      []Subject     `json:"charges,omitempty"`
	RetryAfterMS *int64        `json:"retry_after_ms,omitempty"`
	AtLeast      bool          `json:"retry_after_at_least,omitempty"`
	Contended    bool          `json:"contended,omitempty"`
	Limits       []LimitStatus `json:"limits,omitempty"`
	// The RateLimit header fields' draft names this member.
	ViolatedPolicies []string `json:"violated-policies,omitempty"` //nolint:tagliatelle // Registered.
}

// Subject is who asked, and for what: one charge of a denied request, without its costs.
type Subject struct {
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
}

// Mistake is one of several mistakes in a request.
type Mistake struct {
	Code   weir.Code `json:"code"`
	Field  string    `json:"field,omitempty"`
	Value  string    `json:"value,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// ProblemOf returns the problem for an error. It leaves out causes, and errors that are not of
// package weir, because they may contain data that callers must not see.
func ProblemOf(err error) *Problem {
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		return denialOf(denied)
	}
	faults := FaultsOf(err)
	if len(faults) == 0 {
		faults = []*weir.Error{{Code: weir.Unavailable, Reason: "the service failed"}}
	}
	first := faults[0]
	status, title := describe(first.Code)
	p := &Problem{
		Type:  codePrefix + strings.ReplaceAll(string(first.Code), " ", "-"),
		Title: title, Status: status, Detail: detailOf(first),
		Code: first.Code, Field: first.Field, Value: first.Value, Reason: first.Reason,
	}
	if p.Status == http.StatusInternalServerError {
		p.Status = http.StatusServiceUnavailable // not an error of weir: the outcome is unknown
	}
	if plain, ok := errors.AsType[*HTTPError](err); ok {
		p.Type, p.Title, p.Status = plainProblem, http.StatusText(plain.Status), plain.Status
	}
	if conflict, ok := errors.AsType[*change.ConflictError](first.Err); ok {
		p.setConflict(conflict)
	}
	if len(faults) > 1 {
		p.Detail += " (and " + strconv.Itoa(len(faults)-1) + " more)"
		for _, f := range faults[:min(len(faults), MaxMistakes)] {
			p.Errors = append(p.Errors, Mistake{f.Code, f.Field, f.Value, f.Reason})
		}
	}
	return p
}

// setConflict adds what is known of a conflict about a version.
func (p *Problem) setConflict(e *change.ConflictError) {
	p.Detail += ": " + e.Error()
	p.CurrentVersion, p.LastChange, p.ChangedBy = e.Version, e.Action, e.By
	if !e.At.IsZero() {
		p.ChangedAt = instantOf(e.At)
	}
}

// conflict returns the cause of a conflict about a version; nil for any other problem.
func (p *Problem) conflict() error {
	isVersion := p.Code == weir.Conflict && p.Field == "version"
	if !isVersion {
		return nil
	}
	e := &change.ConflictError{Version: p.CurrentVersion, Action: p.LastChange, By: p.ChangedBy}
	e.At, _ = readInstant(p.ChangedAt) // zero if it is missing
	return e
}

func denialOf(e *weir.DeniedError) *Problem {
	p := &Problem{
		Type: quotaExceeded, Title: "Denied by a limit", Status: http.StatusTooManyRequests,
		Detail:  strings.TrimPrefix(e.Error(), "weir: "),
		Allowed: new(false), RetryAfterMS: new(CeilUnits(e.RetryAfter, time.Millisecond)),
		AtLeast: e.AtLeast, Contended: e.Contended, Limits: StatusesOf(e.Limits),
		ViolatedPolicies: violatedPolicies(e.Limits),
	}
	for _, s := range e.Charges {
		p.Charges = append(p.Charges, Subject(s))
	}
	if !e.LeaseID.IsZero() {
		p.LeaseID = e.LeaseID.String()
	}
	return p
}

// detailOf returns a line of text about the error, without the cause.
func detailOf(f *weir.Error) string {
	shown := *f
	shown.Err = nil
	return strings.TrimPrefix(shown.Error(), "weir: ")
}

// headerOf sets the header fields that an error requires: Retry-After for a denial or an overload,
// and the header of an [HTTPError]. Clients of LLM APIs sleep for any Retry-After, or ignore one
// above a minute and ask again at once. X-Should-Retry tells them to do neither where the wait is
// longer, or where the request never fits.
func headerOf(h http.Header, err error) {
	if plain, ok := errors.AsType[*HTTPError](err); ok {
		maps.Copy(h, plain.header)
	}
	var wait time.Duration
	if errors.Is(err, weir.NeverSatisfiable) {
		h.Set(shouldRetryHeader, "false")
		return
	}
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		wait = denied.RetryAfter
		if wait > time.Minute {
			h.Set(shouldRetryHeader, "false")
		}
	} else if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Overloaded {
		wait = e.RetryAfter
	} else {
		return
	}
	seconds := max(1, CeilUnits(wait, time.Second))
	// Callers that were denied together should not come back together.
	seconds += rand.Int64N(min(seconds/8, maxLater) + 1)
	h.Set("Retry-After", strconv.FormatInt(seconds, 10))
}

// maxLater bounds the random part of Retry-After, in seconds: after a wait of a day it is enough to
// spread callers, too.
const maxLater = 10

// shouldRetryHeader is understood by the clients of OpenAI and Anthropic.
const shouldRetryHeader = "X-Should-Retry"

// describe returns the status and the title of a code; the status is 500 for an unknown one. A
// denial has no code: its status is 429.
func describe(c weir.Code) (status int, title string) {
	switch c {
	case weir.Invalid:
		return http.StatusBadRequest, "The request is malformed"
	case weir.Unsupported:
		return http.StatusBadRequest, "The store cannot do this"
	case weir.PermissionDenied:
		return http.StatusForbidden, "Not permitted"
	case weir.UnknownLimit:
		return http.StatusNotFound, "A cost names a limit that does not exist"
	case weir.NoLimits:
		return http.StatusNotFound, "No limits are configured"
	case weir.NotFound:
		return http.StatusNotFound, "Not found"
	case weir.UnknownLease:
		return http.StatusNotFound, "The lease is not known"
	case weir.Conflict:
		return http.StatusConflict, "In conflict with the current state"
	case weir.Ended:
		return http.StatusConflict, "The lease has ended"
	case weir.NeverSatisfiable:
		return http.StatusUnprocessableEntity, "More than the limit can ever hold"
	case weir.Unavailable:
		return http.StatusServiceUnavailable, "The store did not answer"
	case weir.Superseded:
		return http.StatusServiceUnavailable, "The server's limits are not the ones in force"
	case weir.Overloaded:
		return http.StatusServiceUnavailable, "Too busy, nothing was reserved"
	}
	return http.StatusInternalServerError, "Failed"
}

// Fits reports whether the code goes with the status. It does if describe gives this status for it,
// if the status is one of plainStatuses, or if the code is that of a newer server.
func (p *Problem) Fits() bool {
	for _, m := range p.Errors {
		if m.Code == "" || m.Code == weir.Unavailable {
			return false
		}
	}
	switch usual, _ := describe(p.Code); {
	case usual == http.StatusInternalServerError: // not in the table
		return p.Code != "" && p.Status >= 400 && p.Status < 500 &&
			p.Status != http.StatusRequestTimeout
	case p.Code == weir.Unavailable:
		return false
	case p.Status == usual:
		return true
	case p.Code == weir.Invalid:
		return slices.Contains(plainStatuses, p.Status)
	case p.Code == weir.PermissionDenied:
		return p.Status == http.StatusUnauthorized
	}
	return false
}

// plainStatuses has the statuses for a request that did not reach the service.
var plainStatuses = []int{
	http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
	http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
	http.StatusUnsupportedMediaType, http.StatusRequestHeaderFieldsTooLarge,
}

// Fault returns the error in the problem, or the first of several.
func (p *Problem) Fault() *weir.Error {
	return &weir.Error{
		Code: p.Code, Field: p.Field, Value: p.Value, Reason: p.Reason, Err: p.conflict(),
	}
}

// Mistakes returns the errors in the problem, joined.
func (p *Problem) Mistakes() error {
	if len(p.Errors) < 2 {
		return p.Fault()
	}
	errs := make([]error, len(p.Errors))
	for i, m := range p.Errors {
		errs[i] = &weir.Error{Code: m.Code, Field: m.Field, Value: m.Value, Reason: m.Reason}
	}
	return Join(errs)
}

// Denial returns the denial of a reservation, or an error that says why p is not a complete denial.
// A denial need not name the lease, which holds nothing, but it must not name another lease.
func (p *Problem) Denial(lease weir.LeaseID) (*weir.DeniedError, error) {
	switch {
	case p.Allowed == nil || *p.Allowed || p.RetryAfterMS == nil || p.Limits == nil && !p.Contended:
		return nil, errors.New("is not a complete denial")
	case *p.RetryAfterMS < 0 || anyNegativeWait(p.Limits):
		return nil, errors.New("has a negative wait")
	case p.LeaseID != "" && p.LeaseID != lease.String():
		return nil, errors.New("is about another lease: " + Shorten(p.LeaseID))
	}
	d := &weir.DeniedError{
		LeaseID: lease, Limits: statusesOf(p.Limits), RetryAfter: milliseconds(*p.RetryAfterMS),
		AtLeast: p.AtLeast, Contended: p.Contended,
	}
	for _, s := range p.Charges {
		d.Charges = append(d.Charges, weir.Subject(s))
	}
	return d, nil
}
