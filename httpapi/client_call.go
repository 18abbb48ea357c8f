package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/apijson"
)

// Bounds on the body of a reply, in bytes.
const (
	maxVerbReply = 1 << 20
	maxListReply = 64 << 20
)

// longestPause bounds the pause between attempts.
const longestPause = 2 * time.Second

// apiCall is one call of the API. All its attempts send the same request.
type apiCall struct {
	method string
	path   string // with its query, escaped
	body   any    // nil for none
	most   int64  // the largest body of a reply, in bytes
	tries  int    // bounds the attempts; 0 for the bound of the options
	// timeout bounds one attempt; 0 for the bound of the options.
	timeout time.Duration
	denies  bool // 429 may be a denial
	lease   weir.LeaseID
	// ifMatch and ifNoneMatch are the headers of the condition of a change; empty for none.
	ifMatch, ifNoneMatch string
	// accept parses the body of a reply with status 200. An error means that a weir server did not
	// write the body.
	accept func(body []byte) error

	text []byte // the body as it is sent
}

func get(path string) *apiCall {
	return &apiCall{method: http.MethodGet, path: path, most: maxListReply}
}

func post(path string, body any) *apiCall {
	return &apiCall{method: http.MethodPost, path: path, body: body, most: maxVerbReply}
}

// call sends an API call and returns the result of read for the body of the reply.
func call[T any](
	ctx context.Context, c *Client, k *apiCall, read func(body []byte) (T, error),
) (T, callResult) {
	var answer, none T
	k.accept = func(body []byte) (err error) {
		answer, err = read(body)
		return err
	}
	out := c.do(ctx, k)
	if out.err != nil {
		return none, out
	}
	return answer, out
}

// encode encodes the body.
func (k *apiCall) encode() (err error) {
	if k.body != nil {
		k.text, err = apijson.Write(k.body)
	}
	return err
}

// reply is the HTTP response to one attempt, from a server or from a proxy before it.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// callResult is the result of a call.
type callResult struct {
	// err is nil after a success. Otherwise it is the error that the server returned, or
	// unavailable.
	err error
	// unknown reports whether the server may have carried out an attempt that has no answer.
	unknown bool
	// pending reports whether an attempt without an answer from weir may still arrive.
	pending bool
	// attempts is the number of attempts.
	attempts int
	// header is the header of the last reply, or nil.
	header http.Header
}

// noAnswer is the reason that an attempt has no answer from weir, so that its outcome is unknown.
type noAnswer struct {
	cause error
	fault *weir.Error   // the server's own error, if it returned one
	pause time.Duration // the server's Retry-After
	// refused reports whether the server was too busy, in which case the attempt changed nothing.
	refused bool
	// unsent reports whether there was no connection, so that nothing was sent.
	unsent bool
}

// do sends a call until it has an answer, the attempts are used up, or the context ends.
func (c *Client) do(ctx context.Context, k *apiCall) callResult {
	if err := ctx.Err(); err != nil {
		return callResult{err: &weir.Error{Code: weir.Unavailable,
			Reason: "the context of the call has ended", Err: err}}
	}
	if err := k.encode(); err != nil {
		return callResult{err: err}
	}
	ctx, cancel := withoutLastTenth(ctx)
	defer cancel()
	var out callResult
	attempts := cmp.Or(k.tries, c.options.Attempts)
	for n := 1; ; n++ {
		out.attempts = n
		r, err := c.send(ctx, k)
		var why *noAnswer
		if err != nil {
			why = &noAnswer{cause: err, unsent: unsent(err)}
		} else {
			out.header = r.header
			why, out.err = k.judge(r)
		}
		if why == nil {
			return out
		}
		// A refused attempt does not settle the outcome of an earlier attempt without an answer.
		out.unknown = out.unknown || !why.refused && !why.unsent
		out.pending = out.pending || why.fault == nil && !why.unsent
		next := pauseBefore(n, c.options.Backoff, longestPause, min(why.pause, c.options.Timeout))
		if n == attempts || !pause(ctx, next) {
			if out.err = error(why.fault); out.unknown || why.fault == nil {
				out.err = why.unavailable(ctx.Err())
			}
			return out
		}
	}
}

// unsent reports whether an attempt failed because there was no connection.
func unsent(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

// withoutLastTenth returns a context that ends when nine tenths of the time to the deadline have
// passed.
func withoutLastTenth(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, left-left/10)
}

// send makes one attempt and reads the whole reply, so that the connection can be used again.
func (c *Client) send(ctx context.Context, k *apiCall) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(k.timeout, c.options.Timeout))
	defer cancel()
	var body io.Reader
	if k.body != nil {
		body = bytes.NewReader(k.text)
	}
	//nolint:gosec,nolintlint // NewClient's caller chooses the URL; gosec sees it in some runs only.
	req, err := http.NewRequestWithContext(ctx, k.method, c.base+k.path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if k.ifMatch != "" {
		req.Header.Set("If-Match", k.ifMatch)
	}
	if k.ifNoneMatch != "" {
		req.Header.Set("If-None-Match", k.ifNoneMatch)
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

// pauseBefore returns the pause between attempts n and n+1. The pause is first, doubled for each
// attempt up to longest, shortened by up to a half at random, and at least asked, the server's
// Retry-After.
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

// pause sleeps. It returns false at once if the context would end first.
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

// unavailable returns the error of a call whose last attempt had no answer. The argument ended is
// the error of the context, or nil.
func (d *noAnswer) unavailable(ended error) *weir.Error {
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

// judge returns the error in a reply, or nil for a success. If weir did not write the reply or did
// not know the outcome, judge returns a noAnswer instead. It never takes a reply that it cannot
// parse for a denial.
func (k *apiCall) judge(r *reply) (*noAnswer, error) {
	if r.status == http.StatusOK {
		if !r.hasMediaType("application/json") {
			return r.noAnswer(r.wrongMediaType()), nil
		}
		if err := k.accept(r.body); err != nil {
			return r.noAnswer(err.Error()), nil
		}
		return nil, nil
	}
	if r.hasMediaType("application/problem+json") {
		var p apijson.Problem
		if err := json.Unmarshal(r.body, &p); err != nil {
			return r.noAnswer(err.Error()), nil
		}
		if p.Status != r.status {
			return r.noAnswer(fmt.Sprintf("has status %d in its body", p.Status)), nil
		}
		return k.judgeProblem(r, &p)
	}
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		// A proxy before the server refuses the call. A degraded lease would hide that.
		return nil, &weir.Error{Code: weir.PermissionDenied,
			Reason: "the answer was " + r.statusText()}
	}
	return r.noAnswer("is not from a weir server"), nil
}

func (k *apiCall) judgeProblem(r *reply, p *apijson.Problem) (*noAnswer, error) {
	if r.status == http.StatusTooManyRequests || p.Allowed != nil {
		if !k.denies || r.status != http.StatusTooManyRequests {
			return r.noAnswer("is not a complete denial"), nil
		}
		denied, err := p.Denial(k.lease)
		if err != nil {
			return r.noAnswer(err.Error()), nil
		}
		return nil, denied
	}
	err := p.Fault()
	switch {
	case r.status == http.StatusServiceUnavailable && err.Code == weir.Unavailable:
		d := r.noAnswer("")
		d.cause = errors.New("the server answered " + r.statusText())
		if err.Reason == "" && p.Detail != "" {
			d.cause = fmt.Errorf("%w: %s", d.cause, p.Detail)
		}
		d.fault = err
		return d, nil
	case r.status == http.StatusServiceUnavailable && err.Code == weir.Overloaded:
		d := r.noAnswer("says that the server is too busy")
		err.RetryAfter = d.pause
		d.fault, d.refused = err, true
		return d, nil
	case !p.Fits():
		return r.noAnswer(fmt.Sprintf("does not fit its code %q", err.Code)), nil
	case r.status == http.StatusBadRequest && err.Field == "body":
		// The client sent a valid body, so the server received another one.
		return r.noAnswer("says that the body " + err.Reason), nil
	}
	return nil, p.Mistakes()
}

func (r *reply) hasMediaType(media string) bool {
	given, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	return err == nil && given == media
}

// wrongMediaType says that the Content-Type header is not that of an answer from weir.
func (r *reply) wrongMediaType() string {
	if given := r.header.Get("Content-Type"); given != "" {
		return fmt.Sprintf("has the Content-Type header %q, not application/json", apijson.Shorten(given))
	}
	return "has no Content-Type header, which must be application/json"
}

// noAnswer returns the reason that the reply is not an answer from weir, with its Retry-After.
func (r *reply) noAnswer(wrong string) *noAnswer {
	d := &noAnswer{cause: fmt.Errorf("the answer %s %s", r.statusText(), wrong)}
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
