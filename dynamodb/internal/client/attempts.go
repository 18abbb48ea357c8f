package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
)

const (
	// CallAttempts is how often a call is sent at most.
	CallAttempts = 4
	// callBackoff is the pause before the second attempt; before each further one it is twice as
	// long. The SDK's own pauses would take most of the second that a call has.
	callBackoff = 25 * time.Millisecond
)

// newRetryer repeats what was certainly not applied or does no harm when repeated, a few times and
// no longer than the call's context. What must not be repeated, [attempts] has marked so.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.Backoff = CallAttempts, retry.BackoffDelayerFunc(callPause)
		o.Retryables = append(slices.Clone(retry.DefaultRetryables),
			retry.IsErrorRetryableFunc(conflicted))
	})
}

// callPause returns how long to wait before an attempt is repeated: between half of what is due
// and all of it.
func callPause(attempt int, _ error) (time.Duration, error) {
	due := callBackoff << min(max(attempt-1, 0), CallAttempts)
	return due/2 + rand.N(due/2), nil
}

// conflicted lets a transaction that met another one be repeated: it was not applied.
func conflicted(err error) aws.Ternary {
	switch OutcomeOf(err).Kind {
	case WriteConflicted, WriteThrottled:
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// callMiddleware looks at each call, outside of the SDK's repetition.
type callMiddleware struct{ readOnly bool }

// ID names the middleware.
func (*callMiddleware) ID() string { return "WeirCalls" }

// HandleFinalize makes a call with all its attempts. After an attempt that may have been applied,
// the outcome is unknown whatever a later one said, unless that was a failed condition: a
// transaction that had been applied would have been recognised.
func (r *callMiddleware) HandleFinalize(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if r.readOnly && !isReadCall(middleware.GetOperationName(ctx)) {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, &weir.Error{
			Code: weir.Unsupported, Reason: "the table was opened for reading only",
		}
	}
	c := &sdkCall{}
	out, metadata, err := next.HandleFinalize(context.WithValue(ctx, callKey{}, c), in)
	if err != nil && c.doubt.Load() {
		if kind := OutcomeOf(err).Kind; kind != WriteUnknown && kind != WriteRefused {
			err = &UnknownError{Err: err}
		}
	}
	return out, metadata, err
}

// sdkCall is what the attempts of one call share.
type sdkCall struct{ doubt atomic.Bool }

type callKey struct{}

// attemptMiddleware looks at each attempt of each call, inside of the SDK's repetition. It reads
// the clock of the answers, and marks a write that may have been applied, so that it is neither
// repeated nor taken for failed.
type attemptMiddleware struct {
	clock *Clock
	now   func() time.Time
}

// ID names the middleware.
func (*attemptMiddleware) ID() string { return "WeirAttempts" }

// HandleFinalize sends one attempt.
func (a *attemptMiddleware) HandleFinalize(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	at := &httpAttempt{}
	before := a.now()
	out, metadata, err := next.HandleFinalize(context.WithValue(ctx, attemptKey{}, at), in)
	a.clock.observe(before, a.now(), metadata)
	if err == nil || !isWrite(ctx) || !at.mayHaveArrived(err) || isRejection(err) {
		return out, metadata, err
	}
	if c, ok := ctx.Value(callKey{}).(*sdkCall); ok {
		c.doubt.Store(true)
	}
	if unsafeToRetry(ctx) {
		err = &UnknownError{Err: err}
	}
	return out, metadata, err
}

// isReadCall reports whether a call changes nothing.
func isReadCall(operation string) bool {
	switch operation {
	case "GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan", "DescribeTable",
		"DescribeTimeToLive":
		return true
	}
	return false
}

// isWrite reports whether a call changes items by conditions or sums. A batch only deletes, which
// may be repeated.
func isWrite(ctx context.Context) bool {
	return unsafeToRetry(ctx) || middleware.GetOperationName(ctx) == "TransactWriteItems"
}

// unsafeToRetry reports whether a call counts twice when it is sent twice. A transaction has a
// token by which DynamoDB recognises it.
func unsafeToRetry(ctx context.Context) bool {
	switch middleware.GetOperationName(ctx) {
	case "UpdateItem", "PutItem", "DeleteItem":
		return true
	}
	return false
}

// isRejection reports whether DynamoDB itself said that it did not do something. What it says of
// its own failures, from 500 on, leaves that open.
func isRejection(err error) bool {
	status, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err)
	if !ok || status.HTTPStatusCode() < 400 || status.HTTPStatusCode() >= 500 {
		return false
	}
	_, ok = errors.AsType[smithy.APIError](err)
	return ok
}

// httpAttempt is what is known of one attempt.
type httpAttempt struct {
	sent      atomic.Bool // it was handed to the HTTP client
	dialling  atomic.Bool // which looked for a connection
	connected atomic.Bool // and had one
}

// mayHaveArrived returns false only if the call that ended with err certainly never left: there
// was no connection. An HTTP client that does not say how it connects is taken to have sent.
func (a *httpAttempt) mayHaveArrived(err error) bool {
	if !a.sent.Load() || a.connected.Load() {
		return a.sent.Load()
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !a.dialling.Load() && (!ok || op.Op != "dial")
}

type attemptKey struct{}

// sendMiddleware is the innermost middleware, just before the HTTP client.
type sendMiddleware struct{}

// ID names the middleware.
func (sendMiddleware) ID() string { return "WeirSending" }

// HandleDeserialize notes that an attempt leaves, and how far it comes.
func (sendMiddleware) HandleDeserialize(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	if a, ok := ctx.Value(attemptKey{}).(*httpAttempt); ok {
		a.sent.Store(true)
		if isWrite(ctx) {
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
				GetConn: func(string) { a.dialling.Store(true) },
				GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
			})
		}
	}
	return next.HandleDeserialize(ctx, in)
}

// UnknownError is a write that may have been applied.
type UnknownError struct{ Err error }

// Error returns the cause's words.
func (u *UnknownError) Error() string { return "the outcome is unknown: " + u.Err.Error() }

// Unwrap returns the cause.
func (u *UnknownError) Unwrap() error { return u.Err }

// RetryableError keeps every retryer of the SDK from sending the write again.
func (*UnknownError) RetryableError() bool { return false }
