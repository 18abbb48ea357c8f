package client

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// Classify returns an error of the SDK as a [*weir.Error] with the code that fits, and keeps the
// cause. A [*weir.Error] stays as it is.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*weir.Error](err); ok {
		return err
	}
	if missing, ok := errors.AsType[*credentialsError](err); ok {
		return missing.fault()
	}
	e := &weir.Error{Code: weir.Unavailable, Err: err}
	api, isAPI := errors.AsType[smithy.APIError](err)
	switch {
	case !isAPI:
		e.Reason = "the table did not answer"
	case isPermission(api.ErrorCode()):
		e.Code, e.Reason = weir.PermissionDenied, "AWS refused the caller"
	case isThrottle(api.ErrorCode()):
		e.Reason = "the table is throttled"
	case IsMissingTable(err):
		e.Reason = "the table does not exist"
	case api.ErrorCode() == "ValidationException":
		// No repetition mends it, and it is no outage: nothing may be admitted because of it.
		e.Code, e.Reason = weir.Unsupported, "DynamoDB cannot do this"
	default:
		e.Reason = "the table did not do it"
	}
	return e
}

// AbandonedError returns the error for a caller that did not wait for the answer.
func AbandonedError(ctx context.Context) error {
	return &weir.Error{
		Code: weir.Unavailable, Reason: "the table did not answer in time", Err: context.Cause(ctx),
	}
}

// IsMissingTable reports whether an error says that there is no such table.
func IsMissingTable(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	return missing
}

// isPermission reports whether an error's code says that the caller is not allowed to do this, or
// is not known.
func isPermission(code string) bool {
	switch strings.TrimSuffix(code, "Exception") {
	case "AccessDenied", "UnrecognizedClient", "InvalidSignature", "MissingAuthenticationToken",
		"IncompleteSignature", "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch",
		"ExpiredToken", "OptInRequired", "NotAuthorized":
		return true
	}
	return false
}

// Fault returns an error about a value, which it shortens, so that a hostile one does not fill a
// log.
func Fault(code weir.Code, field, value, reason string) *weir.Error {
	value = strings.ToValidUTF8(value, "\uFFFD")
	const limit = 64
	if len(value) > limit {
		value = strings.ToValidUTF8(value[:limit], "") + "… (" + strconv.Itoa(len(value)) + " bytes)"
	}
	return &weir.Error{Code: code, Field: field, Value: value, Reason: reason}
}

// Text returns a string of the SDK; empty if it is nil.
func Text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// WriteKind says what became of a write.
type WriteKind int

const (
	// WriteApplied means that it was done.
	WriteApplied WriteKind = iota
	// WriteRefused means that a condition did not hold, and nothing was done.
	WriteRefused
	// WriteConflicted means that another transaction had the item, and nothing was done.
	WriteConflicted
	// WriteThrottled means that the table had no capacity left, and nothing was done.
	WriteThrottled
	// WriteFailed means that nothing was done, for a reason that [classify] tells.
	WriteFailed
	// WriteUnknown means that it may or may not have been done.
	WriteUnknown
)

// WriteOutcome is what became of a write, by its error.
type WriteOutcome struct {
	Kind WriteKind
	// Image is the item as the condition met it, where the call asked for it (ALL_OLD) and there is
	// an item. Of a transaction see reasons.
	Image schema.Item
	// Reasons has, for a transaction that was refused, one entry for each of its items, with the
	// image where the item asked for it.
	Reasons []types.CancellationReason
}

// The codes in which a transaction says why it was cancelled.
const (
	reasonNone      = "None"
	ReasonCondition = "ConditionalCheckFailed"
	reasonConflict  = "TransactionConflict"
	reasonThrottled = "ThrottlingError"
	reasonExceeded  = "ProvisionedThroughputExceeded"
)

// OutcomeOf returns what became of a write that ended with err.
func OutcomeOf(err error) WriteOutcome {
	if err == nil {
		return WriteOutcome{}
	}
	if _, ok := errors.AsType[*UnknownError](err); ok {
		return WriteOutcome{Kind: WriteUnknown}
	}
	if e, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return WriteOutcome{Kind: WriteRefused, Image: e.Item}
	}
	if e, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return WriteOutcome{Kind: cancelledBy(e.CancellationReasons), Reasons: e.CancellationReasons}
	}
	if _, ok := errors.AsType[*types.TransactionInProgressException](err); ok {
		return WriteOutcome{Kind: WriteUnknown} // an earlier attempt of the same one goes on
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case !ok:
		return WriteOutcome{Kind: WriteFailed}
	case isThrottle(api.ErrorCode()):
		return WriteOutcome{Kind: WriteThrottled}
	case api.ErrorCode() == "TransactionConflictException":
		return WriteOutcome{Kind: WriteConflicted}
	}
	return WriteOutcome{Kind: WriteFailed}
}

// cancelledBy returns which of the reasons counts: a condition before a conflict, because
// repeating does not help.
func cancelledBy(reasons []types.CancellationReason) WriteKind {
	kind := WriteApplied
	for _, r := range reasons {
		switch Text(r.Code) {
		case reasonNone, "":
		case ReasonCondition:
			return WriteRefused
		case reasonConflict:
			kind = max(kind, WriteConflicted)
		case reasonThrottled, reasonExceeded:
			kind = max(kind, WriteThrottled)
		default:
			kind = WriteFailed
		}
	}
	if kind == WriteApplied { // cancelled without a reason
		return WriteFailed
	}
	return kind
}

// isThrottle reports whether an error's code says that there were too many calls.
func isThrottle(code string) bool {
	switch code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling",
		"RequestLimitExceeded", "TooManyRequestsException", "ReplicatedWriteConflictException":
		return true
	}
	return false
}
