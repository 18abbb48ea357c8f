package dynamodb

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

// classify makes an error of the SDK a [*weir.Error] with the code that fits, and keeps the cause.
// What is one already stays as it is.
func classify(err error) error {
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
	case isMissingTable(err):
		e.Reason = "the table does not exist"
	case api.ErrorCode() == "ValidationException":
		// No repetition mends it, and it is no outage: nothing may be admitted because of it.
		e.Code, e.Reason = weir.Unsupported, "DynamoDB cannot do this"
	default:
		e.Reason = "the table did not do it"
	}
	return e
}

// abandonedError says that the caller did not wait for the answer.
func abandonedError(ctx context.Context) error {
	return &weir.Error{
		Code: weir.Unavailable, Reason: "the table did not answer in time", Err: context.Cause(ctx),
	}
}

// isMissingTable reports whether an error says that there is no such table.
func isMissingTable(err error) bool {
	_, missing := errors.AsType[*types.ResourceNotFoundException](err)
	return missing
}

// isPermission reports whether an error's code says that the caller is not allowed to do this, or
// that nobody knows who it is.
func isPermission(code string) bool {
	switch strings.TrimSuffix(code, "Exception") {
	case "AccessDenied", "UnrecognizedClient", "InvalidSignature", "MissingAuthenticationToken",
		"IncompleteSignature", "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch",
		"ExpiredToken", "OptInRequired", "NotAuthorized":
		return true
	}
	return false
}

// fault makes an error about a value, which it shortens, so that a hostile one does not fill a log.
func fault(code weir.Code, field, value, reason string) *weir.Error {
	value = strings.ToValidUTF8(value, "\uFFFD")
	const limit = 64
	if len(value) > limit {
		value = strings.ToValidUTF8(value[:limit], "") + "… (" + strconv.Itoa(len(value)) + " bytes)"
	}
	return &weir.Error{Code: code, Field: field, Value: value, Reason: reason}
}

// text is a string of the SDK; empty if it has none.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// writeKind is what became of a write.
type writeKind int

const (
	// writeApplied: it was done.
	writeApplied writeKind = iota
	// writeRefused: a condition did not hold, and nothing was done.
	writeRefused
	// writeConflicted: another transaction had the item, and nothing was done.
	writeConflicted
	// writeThrottled: the table had no capacity left, and nothing was done.
	writeThrottled
	// writeFailed: nothing was done, for a reason that [classify] tells.
	writeFailed
	// writeUnknown: it may or may not have been done.
	writeUnknown
)

// writeOutcome is what became of a write, as its error says.
type writeOutcome struct {
	kind writeKind
	// image is the item as the condition met it, where the call asked for it (ALL_OLD) and there is an
	// item. Of a transaction see reasons.
	image schema.Item
	// reasons has, for a transaction that was refused, one entry for each of its items, with the image
	// where the item asked for it.
	reasons []types.CancellationReason
}

// The codes in which a transaction says why it was cancelled.
const (
	reasonNone      = "None"
	reasonCondition = "ConditionalCheckFailed"
	reasonConflict  = "TransactionConflict"
	reasonThrottled = "ThrottlingError"
	reasonExceeded  = "ProvisionedThroughputExceeded"
)

// outcomeOf says what became of a write that ended with err.
func outcomeOf(err error) writeOutcome {
	if err == nil {
		return writeOutcome{}
	}
	if _, ok := errors.AsType[*unknownError](err); ok {
		return writeOutcome{kind: writeUnknown}
	}
	if e, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return writeOutcome{kind: writeRefused, image: e.Item}
	}
	if e, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return writeOutcome{kind: cancelledBy(e.CancellationReasons), reasons: e.CancellationReasons}
	}
	if _, ok := errors.AsType[*types.TransactionInProgressException](err); ok {
		return writeOutcome{kind: writeUnknown} // an earlier attempt of the same one goes on
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case !ok:
		return writeOutcome{kind: writeFailed}
	case isThrottle(api.ErrorCode()):
		return writeOutcome{kind: writeThrottled}
	case api.ErrorCode() == "TransactionConflictException":
		return writeOutcome{kind: writeConflicted}
	}
	return writeOutcome{kind: writeFailed}
}

// cancelledBy says which of the reasons counts: a condition before a conflict, since no repetition
// mends it.
func cancelledBy(reasons []types.CancellationReason) writeKind {
	kind := writeApplied
	for _, r := range reasons {
		switch text(r.Code) {
		case reasonNone, "":
		case reasonCondition:
			return writeRefused
		case reasonConflict:
			kind = max(kind, writeConflicted)
		case reasonThrottled, reasonExceeded:
			kind = max(kind, writeThrottled)
		default:
			kind = writeFailed
		}
	}
	if kind == writeApplied { // cancelled without a reason
		return writeFailed
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
