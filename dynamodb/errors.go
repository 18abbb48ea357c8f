package dynamodb

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
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
