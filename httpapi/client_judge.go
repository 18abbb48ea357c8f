package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
)

// judge says what a reply means: a doubt where weir did not write it, or did not know; otherwise
// nil and the error that it brings, nil for a success. What cannot be read is never taken for a
// denial.
func (k *call) judge(r *reply) (*doubt, error) {
	if r.status == http.StatusOK {
		if !r.isA("application/json") {
			return r.doubt("is not JSON"), nil
		}
		if err := k.accept(r.body); err != nil {
			return r.doubt(err.Error()), nil
		}
		return nil, nil
	}
	if r.isA("application/problem+json") {
		var p problemBody
		if err := json.Unmarshal(r.body, &p); err != nil {
			return r.doubt(err.Error()), nil
		}
		if p.Status != r.status {
			return r.doubt(fmt.Sprintf("says %d of itself", p.Status)), nil
		}
		return k.judgeProblem(r, &p)
	}
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		// Something in front of the server. To go on without a lease would hide it.
		return nil, &weir.Error{Code: weir.PermissionDenied,
			Reason: "the answer was " + r.statusText()}
	}
	return r.doubt("is none of weir's"), nil
}

func (k *call) judgeProblem(r *reply, p *problemBody) (*doubt, error) {
	if r.status == http.StatusTooManyRequests || p.Allowed != nil {
		if !k.denies || r.status != http.StatusTooManyRequests {
			return r.doubt("is no denial"), nil
		}
		return p.denial(r, k.lease)
	}
	err := p.fault()
	switch {
	case r.status == http.StatusServiceUnavailable && err.Code == weir.Unavailable:
		d := r.doubt("")
		d.cause = errors.New("the server answered " + r.statusText())
		if err.Reason == "" && p.Detail != "" {
			d.cause = fmt.Errorf("%w: %s", d.cause, p.Detail)
		}
		d.fault = err
		return d, nil
	case r.status == http.StatusServiceUnavailable && err.Code == weir.Overloaded:
		d := r.doubt("says that the server is too busy")
		err.RetryAfter = d.pause
		d.fault, d.refused = err, true
		return d, nil
	case !p.fits():
		return r.doubt(fmt.Sprintf("does not go with code %q", err.Code)), nil
	case r.status == http.StatusBadRequest && err.Field == "body":
		// What was sent was right, so it was not what arrived.
		return r.doubt("says that the body " + err.Reason), nil
	}
	return nil, p.mistakes()
}

// fits reports whether a code is one that goes with the status: one of the table, one for which
// HTTP has a status of its own, or one that a newer server has.
func (p *problemBody) fits() bool {
	for _, m := range p.Errors {
		if m.Code == "" || m.Code == weir.Unavailable {
			return false
		}
	}
	switch usual := statusOf(p.Code); {
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

// plainStatuses are those that HTTP has for a request that never reached the service.
var plainStatuses = []int{
	http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
	http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
	http.StatusUnsupportedMediaType, http.StatusRequestHeaderFieldsTooLarge,
}

func (p *problemBody) fault() *weir.Error {
	return &weir.Error{Code: p.Code, Field: p.Field, Value: p.Value, Reason: p.Reason}
}

// mistakes are all that a problem lists, joined, or the one that it is.
func (p *problemBody) mistakes() error {
	if len(p.Errors) < 2 {
		return p.fault()
	}
	errs := make([]error, len(p.Errors))
	for i, m := range p.Errors {
		errs[i] = &weir.Error{Code: m.Code, Field: m.Field, Value: m.Value, Reason: m.Reason}
	}
	return errors.Join(errs...)
}

// denial reads a denial of an attempt, which must be complete. It need not name the lease, which
// holds nothing; another one's is not the answer.
func (p *problemBody) denial(r *reply, lease weir.LeaseID) (*doubt, error) {
	if p.Allowed == nil || *p.Allowed || p.RetryAfterMS == nil ||
		p.Limits == nil && !p.Contended {
		return r.doubt("is no denial of weir's"), nil
	}
	if *p.RetryAfterMS < 0 || anyNegativeWait(p.Limits) {
		return r.doubt("has a wait below zero"), nil
	}
	if p.LeaseID != "" && p.LeaseID != lease.String() {
		return r.doubt("is about another lease: " + shorten(p.LeaseID)), nil
	}
	return nil, &weir.DeniedError{
		LeaseID: lease, Limits: statusesOf(p.Limits), RetryAfter: milliseconds(*p.RetryAfterMS),
		AtLeast: p.AtLeast, Contended: p.Contended,
	}
}

func (r *reply) isA(media string) bool {
	given, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	return err == nil && given == media
}

// doubt is one about a reply, which what it is wrong with.
func (r *reply) doubt(wrong string) *doubt {
	d := &doubt{cause: fmt.Errorf("the answer %s %s", r.statusText(), wrong)}
	if r.status == http.StatusServiceUnavailable || r.status == http.StatusTooManyRequests {
		if s, err := strconv.ParseInt(r.header.Get("Retry-After"), 10, 32); err == nil && s > 0 {
			d.pause = time.Duration(s) * time.Second
		}
	}
	return d
}

func (r *reply) statusText() string {
	return fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
}
