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
	// CallAttempts is the largest number of attempts of a call.
	CallAttempts = 4
	// callBackoff is the pause before the second attempt. Each further pause is twice as long. The
	// SDK's own pauses would use up most of the second that a call has.
	callBackoff = 25 * time.Millisecond
)

// retryCost is the part that a retry takes of the SDK's budget of 500, which successful calls fill up
// again. A dearer one, as newer releases of the SDK have it, ends retries after a few failures in a
// row, and then the outcome of a write is unknown more often.
const retryCost = 5

// newRetryer returns a retryer that repeats calls that were certainly not applied or are safe to
// repeat. attemptMiddleware has turned the errors of all others into an [UnknownError], which is
// not retryable.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.Backoff = CallAttempts, retry.BackoffDelayerFunc(callPause)
		o.RetryCost = retryCost
		o.Retryables = append(slices.Clone(retry.DefaultRetryables),
			retry.IsErrorRetryableFunc(conflicted))
	})
}

// callPause returns the pause before an attempt is repeated: a random time between half of the full
// pause and all of it.
func callPause(attempt int, _ error) (time.Duration, error) {
	due := callBackoff << min(max(attempt-1, 0), CallAttempts)
	return due/2 + rand.N(due/2), nil
}

// conflicted makes a write retryable that met another transaction or was throttled: it was not
// applied.
func conflicted(err error) aws.Ternary {
	switch OutcomeOf(err).Kind {
	case WriteConflicted, WriteThrottled:
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// callMiddleware sees each call with all its attempts.
type callMiddleware struct{ readOnly bool }

// ID names the middleware.
func (*callMiddleware) ID() string { return "WeirCalls" }

// HandleFinalize makes a call with all its attempts. If one attempt may have been applied, the
// outcome of the call is unknown, whatever a later attempt returned. The exception is a failed
// condition of a transaction: DynamoDB recognises a repeated transaction by its token, so a failed
// condition means that no attempt was applied.
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

// sdkCall is the state that all attempts of a call share.
type sdkCall struct{ doubt atomic.Bool }

type callKey struct{}

// attemptMiddleware sees each attempt of a call. It compares the clock of the answer, and turns the
// error of a write that may have been applied into an [UnknownError], so that the write is neither
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

// isWrite reports whether a call changes items under conditions or by sums. BatchWriteItem is not
// one: weir uses it only to delete, which may be repeated.
func isWrite(ctx context.Context) bool {
	return unsafeToRetry(ctx) || middleware.GetOperationName(ctx) == "TransactWriteItems"
}

// unsafeToRetry reports whether a call that is sent twice may be applied twice. TransactWriteItems
// is safe, because DynamoDB recognises its token.
func unsafeToRetry(ctx context.Context) bool {
	switch middleware.GetOperationName(ctx) {
	case "UpdateItem", "PutItem", "DeleteItem":
		return true
	}
	return false
}

// isRejection reports whether DynamoDB answered that it did not apply the call (a 4xx status). A
// 5xx status leaves that open.
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

// httpAttempt records how far one attempt has come.
type httpAttempt struct {
	sent      atomic.Bool // it was handed to the HTTP client
	dialling  atomic.Bool // the HTTP client asked for a connection
	connected atomic.Bool // the HTTP client got a connection
}

// mayHaveArrived returns false only if the attempt that failed with err certainly was not sent:
// there was no connection. If the HTTP client does not report its connections, mayHaveArrived
// assumes that the attempt was sent.
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

// HandleDeserialize records that an attempt is sent, and whether it gets a connection.
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

// UnknownError is the error of a write that may have been applied.
type UnknownError struct{ Err error }

// Error returns the text of the cause.
func (u *UnknownError) Error() string { return "the outcome is unknown: " + u.Err.Error() }

// Unwrap returns the cause.
func (u *UnknownError) Unwrap() error { return u.Err }

// RetryableError keeps every retryer of the SDK from sending the write again.
func (*UnknownError) RetryableError() bool { return false }
