package provision

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

func fault(code weir.Code, field, value, reason string) error {
	return weir.NewError(code, field, value, reason)
}

// FailedError says that CloudFormation could not make a change of a stack, and why.
type FailedError struct {
	// Stack is the name of the stack, and Status what its status is now.
	Stack, Status string
	// Events are those of the resources that failed first, in order. What CloudFormation only
	// cancelled because of them is not among them.
	Events []Event
	// Reason explains the status of the stack itself, if no resource failed.
	Reason string
	// Advice says what to do.
	Advice string
}

// Error has the stack, the reason of each event, and the advice.
func (e *FailedError) Error() string {
	var b strings.Builder
	b.WriteString("weir: stack \"" + e.Stack + "\" failed, and is " + e.Status)
	for i := range e.Events {
		v := &e.Events[i]
		b.WriteString("; " + v.ID + " (" + v.Type + ") is " + v.Status)
		if v.Reason != "" {
			b.WriteString(": " + strings.TrimRight(v.Reason, ". "))
		}
	}
	if e.Reason != "" {
		b.WriteString(": " + strings.TrimRight(e.Reason, ". "))
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// classify returns an error of the SDK as a [*weir.Error] with the code that fits.
func (a *Account) classify(stack string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*weir.Error](err); ok {
		return err
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	e := &weir.Error{Code: weir.Unavailable, Field: "stack", Value: clip(stack), Err: err}
	if stack == "" {
		e.Field = ""
	}
	switch {
	case isAPI && strings.Contains(api.ErrorMessage(), "does not exist") &&
		api.ErrorCode() == "ValidationError":
		return a.missing(stack)
	case isAPI && (awsconfig.IsPermission(api.ErrorCode()) || api.ErrorCode() == "Forbidden"):
		e.Code, e.Reason = weir.PermissionDenied, "AWS refused the credentials or the permissions"
	case isAPI && (api.ErrorCode() == "ValidationError" || api.ErrorCode() == "ValidationException"):
		e.Code, e.Reason = weir.Unsupported, "AWS refused the request"
	case isAPI:
		e.Reason = "AWS returned an error"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Reason = "AWS did not answer in time"
	case isCredentials(err):
		e.Code, e.Reason, e.Err = weir.PermissionDenied, awsconfig.NoCredentials, nil
	default:
		e.Reason = "AWS did not answer"
	}
	return e
}

// isCredentials reports whether a call was not sent because there were no credentials.
func isCredentials(err error) bool {
	text := err.Error()
	return awsconfig.IsUnconfigured(err) || strings.Contains(text, "get identity: get credentials") ||
		strings.Contains(text, "failed to refresh cached credentials")
}
