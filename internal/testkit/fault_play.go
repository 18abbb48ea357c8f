package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// errHeld is the error of a caller that is still waiting when a delay ends.
var errHeld = errors.New("testkit: no answer for as long as faults hold one back")

// performTimeout bounds the server's time for a request whose caller may have left.
const performTimeout = 30 * time.Second

// hit is a request that a rule has hit.
type hit struct {
	f    *Faults
	rule *FaultRule
	req  *http.Request
	r    *FaultRequest
}

// play injects the rule's fault into the request.
func (h *hit) play() (*http.Response, error) {
	switch h.rule.Fault {
	case LostAnswer:
		h.perform()
		return nil, broken("read", syscall.ECONNRESET)
	case LostRequest:
		return nil, broken("read", syscall.ECONNRESET)
	case NoConnection, Cut:
		return nil, broken("dial", syscall.ECONNREFUSED)
	case DelayedAnswer:
		h.perform()
		return nil, h.wait()
	case DelayedRequest:
		return nil, h.wait()
	case LateRequest:
		err := h.wait()
		h.f.late.Go(h.perform)
		return nil, err
	case FailAfter:
		h.perform()
		return h.failure(http.StatusInternalServerError, "InternalServerError", nil), nil
	case Unprocessed:
		return h.half()
	case ShortPage:
		return h.shortPage()
	}
	return h.refuse()
}

// refuse answers instead of the server.
func (h *hit) refuse() (*http.Response, error) {
	code := h.rule.Code
	switch h.rule.Fault {
	case Throttle:
		code = or(code, "ProvisionedThroughputExceededException")
		return h.failure(http.StatusBadRequest, code, nil), nil
	case Refuse:
		return h.failure(http.StatusBadRequest, or(code, "ValidationException"), nil), nil
	case Fail:
		return h.failure(http.StatusInternalServerError, "InternalServerError", nil), nil
	case Conflict:
		return h.failure(http.StatusBadRequest, "TransactionConflictException", nil), nil
	case Cancel:
		reasons, err := h.reasons()
		if err != nil {
			return nil, err
		}
		return h.failure(http.StatusBadRequest, "TransactionCanceledException", reasons), nil
	}
	return nil, fmt.Errorf("testkit: a rule names no fault: %s", h.rule.Fault)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// perform sends the request to the server, even if the caller has left, and records the answer only
// for the checks of the test.
func (h *hit) perform() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.req.Context()), performTimeout)
	defer cancel()
	u := Unanswered{Fault: h.rule.Fault, Operation: h.r.Operation, Body: h.r.Body}
	if resp, err := h.f.send(h.req.WithContext(ctx), h.r.Body); err == nil {
		u.Status = resp.StatusCode
		u.Answer, _ = io.ReadAll(resp.Body) // the caller does not get it in any case
		_ = resp.Body.Close()
	}
	h.f.note(u)
}

// wait waits until the caller gives up, or the delay ends.
func (h *hit) wait() error {
	held := time.NewTimer(h.f.hold)
	defer held.Stop()
	select {
	case <-h.req.Context().Done():
		return h.req.Context().Err()
	case <-held.C:
		return &net.OpError{Op: "read", Net: "tcp", Err: errHeld}
	}
}

// broken returns the error of a connection that was reset or refused.
func broken(op string, cause syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Err: cause}
}

// answer returns a response in the server's form, without its checksum.
func (h *hit) answer(status int, header http.Header, body []byte) *http.Response {
	header.Del("X-Amz-Crc32")
	header.Del("Content-Length")
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Request: h.req,
	}
}
