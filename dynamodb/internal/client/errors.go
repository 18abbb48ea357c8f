package client

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
	"github.com/weir-limiter/weir/internal/schema"
)

// Classify returns an error of the SDK as a [*weir.Error] with the code that fits and err as its
// cause. It returns a [*weir.Error] unchanged.
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
	case awsconfig.IsPermission(api.ErrorCode()):
		e.Code, e.Reason = weir.PermissionDenied, "AWS refused the credentials or the permissions"
	case isThrottle(api.ErrorCode()):
		e.Reason = "the table is throttled"
	case IsMissingTable(err):
		e.Reason = "the table does not exist"
	case api.ErrorCode() == "ValidationException":
		// A retry does not help, and it is not an outage: no policy may admit requests because of
		// it.
		e.Code, e.Reason = weir.Unsupported, "DynamoDB refused the request as invalid"
	default:
		e.Reason = "DynamoDB returned an error"
	}
	return e
}

// AbandonedError returns the error for a caller whose context ended before the answer.
func AbandonedError(ctx context.Context) error {
	return &weir.Error{
		Code: weir.Unavailable, Reason: "the table did not answer in time", Err: context.Cause(ctx),
	}
}

// IsMissingTable reports whether an error says that the table does not exist.
func IsMissingTable(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	return missing
}

// IsUnknownOperation reports whether an error says that the endpoint does not have the call.
func IsUnknownOperation(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "UnknownOperationException"
}

// Fault returns an error about a value. It shortens the value, so that a hostile one does not fill
// the log.
func Fault(code weir.Code, field, value, reason string) *weir.Error {
	value = strings.ToValidUTF8(value, "\uFFFD")
	const limit = 64
	if len(value) > limit {
		value = strings.ToValidUTF8(value[:limit], "") + "… (" + strconv.Itoa(len(value)) + " bytes)"
	}
	return &weir.Error{Code: code, Field: field, Value: value, Reason: reason}
}

// Text returns the string that s points to; empty if s is nil.
func Text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// WriteKind is the kind of outcome of a write.
type WriteKind int

const (
	// WriteApplied means that the write was applied.
	WriteApplied WriteKind = iota
	// WriteRefused means that a condition failed and nothing was written.
	WriteRefused
	// WriteConflicted means that another transaction was at work on the item and nothing was
	// written.
	WriteConflicted
	// WriteThrottled means that DynamoDB throttled the write and nothing was written.
	WriteThrottled
	// WriteFailed means that nothing was written for another reason; see [Classify].
	WriteFailed
	// WriteUnknown means that the write may or may not have been applied.
	WriteUnknown
)

// WriteOutcome is the outcome of a write.
type WriteOutcome struct {
	Kind WriteKind
	// Image is the item that made the condition fail, if the call asked for it (ALL_OLD) and the
	// item exists. For a transaction see Reasons.
	Image schema.Item
	// Reasons has one entry for each item of a refused transaction, with the item if the call asked
	// for it.
	Reasons []types.CancellationReason
}

// The reasons that DynamoDB gives for the cancellation of a transaction.
const (
	reasonNone      = "None"
	ReasonCondition = "ConditionalCheckFailed"
	reasonConflict  = "TransactionConflict"
	reasonThrottled = "ThrottlingError"
	reasonExceeded  = "ProvisionedThroughputExceeded"
)

// OutcomeOf returns the outcome of a write that returned err.
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
		return WriteOutcome{Kind: WriteUnknown} // an earlier attempt of the transaction is still running
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

// cancelledBy returns the outcome for the reasons of a cancelled transaction. A failed condition
// takes precedence over a conflict, because a retry does not help.
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

// isThrottle reports whether an error code says that there were too many calls.
func isThrottle(code string) bool {
	switch code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling",
		"RequestLimitExceeded", "TooManyRequestsException", "ReplicatedWriteConflictException":
		return true
	}
	return false
}
