package client

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

// ChainCredentials are the credentials of the SDK's own chain. Their errors can be told from those
// of the table; see [Classify].
type ChainCredentials struct {
	Chain aws.CredentialsProvider // caches the credentials
	found atomic.Bool
}

// Retrieve returns credentials, or a [*credentialsError].
func (c *ChainCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.Chain.Retrieve(ctx)
	switch {
	case err == nil:
		c.found.Store(true)
		return found, nil
	case errors.Is(err, context.Canceled): // the caller has left; the credentials may be fine
		return found, err
	}
	return found, &credentialsError{err: err, had: c.found.Load()}
}

// credentialsError is the error of a call that was not sent because there were no credentials.
type credentialsError struct {
	err error
	had bool // an earlier call had credentials
}

// Error returns the text of the cause.
func (c *credentialsError) Error() string { return c.err.Error() }

// Unwrap returns the cause.
func (c *credentialsError) Unwrap() error { return c.err }

// fault returns the error that callers see. A process that had credentials may get them again by
// itself, so this is an outage. A process that never had any needs instructions. An error of the
// instance's role, the last link of the chain, is left out: it only says that nothing is
// configured.
func (c *credentialsError) fault() *weir.Error {
	if c.had {
		return &weir.Error{Code: weir.Unavailable, Reason: "the AWS credentials cannot be renewed", Err: c.err}
	}
	fault := &weir.Error{Code: weir.PermissionDenied, Reason: awsconfig.NoCredentials, Err: c.err}
	if awsconfig.IsUnconfigured(c.err) {
		fault.Err = nil
	}
	return fault
}
