package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Bounds of an answer's body.
const (
	mostOfVerb = 1 << 20
	mostOfList = 64 << 20
)

// longestPause is how far the doubling of pauses goes.
const longestPause = 2 * time.Second

// call is one call of the API. It is sent as it is until it has an answer.
type call struct {
	method string
	path   string // with its query, escaped
	body   []byte // nil where there is none
	most   int64  // bytes of the answer
	once   bool   // where asking again is the caller's to decide
	tries  int    // attempts at most; 0 for as many as the options say
	denies bool   // where 429 may be a denial
	lease  weir.LeaseID
	// accept reads a body of status 200. An error means that weir did not write it.
	accept func(body []byte) error
}

// reply is what came back for one attempt.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// outcome is what became of a call.
type outcome struct {
	// err is nil for a success; what the server answered; or Unavailable.
	err error
	// unknown is true where an attempt may have done what was asked without saying so.
	unknown bool
	// pending is true if an attempt had no answer of weir's, so that it may still arrive.
	pending bool
	// attempts is how many were made.
	attempts int
	// header is that of the last reply; nil without one.
	header http.Header
}

// doubt is why the outcome of an attempt is unknown.
type doubt struct {
	cause error
	fault *weir.Error   // what the server said of it, if it was the server
	pause time.Duration // how long it asked to wait
	// refused means that the server was too busy to do anything: this attempt changed nothing.
	refused bool
}

// do sends a call until its outcome is known, the attempts are used up, or the context ends.
func (c *Client) do(ctx context.Context, k *call) outcome {
	if err := ctx.Err(); err != nil {
		return outcome{err: &weir.Error{Code: weir.Unavailable, Reason: "the caller has gone", Err: err}}
	}
	ctx, cancel := lessATenth(ctx)
	defer cancel()
	var out outcome
	attempts := c.options.Attempts
	if k.once {
		attempts = 1
	} else if k.tries > 0 {
		attempts = k.tries
	}
	for n := 1; ; n++ {
		out.attempts = n
		r, err := c.send(ctx, k)
		var why *doubt
		if err != nil {
			why = &doubt{cause: err}
		} else {
			out.header = r.header
			why, out.err = k.judge(r)
		}
		if why == nil {
			return out
		}
		// An attempt that was refused says nothing about one before it that had no answer.
		out.unknown = out.unknown || !why.refused
		out.pending = out.pending || why.fault == nil
		next := pauseBefore(n, c.options.Backoff, longestPause, min(why.pause, c.options.Timeout))
		if n == attempts || !pause(ctx, next) {
			if out.err = error(why.fault); out.unknown {
				out.err = why.unavailable(ctx.Err())
			}
			return out
		}
	}
}

// lessATenth keeps a tenth of what is left of the caller's deadline.
func lessATenth(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-left/10)
}

// send makes one attempt and reads what comes back, so that the connection can be used again.
func (c *Client) send(ctx context.Context, k *call) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var body io.Reader
	if k.body != nil {
		body = bytes.NewReader(k.body)
	}
	//nolint:gosec,nolintlint // The client's maker chooses it; gosec sees it in some runs only.
	req, err := http.NewRequestWithContext(ctx, k.method, c.base+k.path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.options.BearerToken != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.BearerToken)
	}
	resp, err := c.http.Do(req) //nolint:gosec,nolintlint // As above.
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(resp.Body, k.most+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(got)) > k.most {
		return nil, fmt.Errorf("the answer has more than %d bytes", k.most)
	}
	return &reply{resp.StatusCode, resp.Header, got}, nil
}

// pauseBefore is how long to wait before attempt n+1: first, doubled each time up to longest,
// shortened by up to a half, and no less than the server asks for.
func pauseBefore(n int, first, longest, asked time.Duration) time.Duration {
	next := first
	for range n - 1 {
		if next >= longest {
			break
		}
		next *= 2
	}
	next = min(next, max(first, longest))
	next -= time.Duration(rand.Int64N(int64(next)/2 + 1))
	return max(next, asked)
}

// pause waits, and returns false if the context will have ended by then.
func pause(ctx context.Context, next time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= next {
		return false
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unavailable is the error of a call whose last attempt was in doubt. Ended is why the context has
// ended, if it has.
func (d *doubt) unavailable(ended error) *weir.Error {
	cause := d.cause
	if ended != nil && !errors.Is(cause, ended) {
		cause = fmt.Errorf("%w, after: %w", ended, cause)
	}
	if d.fault == nil || d.refused {
		return &weir.Error{Code: weir.Unavailable, Reason: "the server did not answer", Err: cause}
	}
	e := *d.fault
	e.Err = cause
	return &e
}

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
		var p apijson.Problem
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

func (k *call) judgeProblem(r *reply, p *apijson.Problem) (*doubt, error) {
	if r.status == http.StatusTooManyRequests || p.Allowed != nil {
		if !k.denies || r.status != http.StatusTooManyRequests {
			return r.doubt("is no denial"), nil
		}
		denied, err := p.Denial(k.lease)
		if err != nil {
			return r.doubt(err.Error()), nil
		}
		return nil, denied
	}
	err := p.Fault()
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
	case !p.Fits():
		return r.doubt(fmt.Sprintf("does not go with code %q", err.Code)), nil
	case r.status == http.StatusBadRequest && err.Field == "body":
		// What was sent was right, so it was not what arrived.
		return r.doubt("says that the body " + err.Reason), nil
	}
	return nil, p.Mistakes()
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
