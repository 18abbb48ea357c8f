package archive

import (
	"context"
	"errors"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
)

// classify returns an error of the SDK as a [*weir.Error] that names the bucket and the key, and
// says what to do. key may be empty.
func (a *Archive) classify(key string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*weir.Error](err); ok {
		return err
	}
	e := &weir.Error{
		Code: weir.Unavailable, Field: "archive", Err: err,
		Value: "s3://" + a.Bucket + "/" + a.Prefix + key,
	}
	code, status, region := describe(err)
	switch {
	case isCredentials(err):
		e.Code = weir.PermissionDenied
		e.Reason = "no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, or run aws sso login"
	case code == "NoSuchBucket", code == "NotFound" && key == "":
		e.Code = weir.NotFound
		e.Reason = "the bucket does not exist: create it (aws s3 mb s3://" + a.Bucket +
			"), or correct the URL"
	case code == "NoSuchKey":
		e.Code, e.Reason = weir.NotFound, "the object does not exist any more"
	case code == "InvalidObjectState":
		e.Code = weir.Unsupported
		e.Reason = "the object is in an archive class of S3: restore it (aws s3api restore-object), and try again"
	case status == http.StatusMovedPermanently, code == "PermanentRedirect",
		code == "AuthorizationHeaderMalformed", code == "IllegalLocationConstraintException":
		e.Code = weir.Invalid
		e.Reason = "the bucket is in another region: give it in the archive's URL (?region=…)"
		if region != "" {
			e.Reason = "the bucket is in " + region + ": add ?region=" + region +
				" to the archive's URL"
		}
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		e.Code = weir.PermissionDenied
		e.Reason = "AWS refused the credentials or the permissions: writing needs s3:PutObject, reading " +
			"s3:ListBucket and s3:GetObject"
	case errors.Is(err, context.DeadlineExceeded):
		e.Reason = "the bucket did not answer in time"
	case status == 0:
		e.Reason = "the bucket did not answer"
	default:
		e.Reason = "S3 returned an error"
	}
	return e
}

// describe returns the code of an error, its HTTP status, and the region that S3 asked for.
func describe(err error) (code string, status int, region string) {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.Response != nil {
		status, region = answer.HTTPStatusCode(), answer.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return code, status, region
}
