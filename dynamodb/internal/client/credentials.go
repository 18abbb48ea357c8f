package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
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
	fault := &weir.Error{Code: weir.PermissionDenied, Reason: noCredentials, Err: c.err}
	if last, ok := errors.AsType[*smithy.OperationError](c.err); ok && last.Service() == "ec2imds" {
		fault.Err = nil
	}
	return fault
}

// noCredentials says where the SDK's chain looks, in its order, and what the operator can do.
const noCredentials = "no AWS credentials were found in the environment, in ~/.aws, or as a role of the " +
	"container or instance (IMDS): set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run " +
	"aws sso login"

// localPatience bounds the search for credentials for a DynamoDB on this machine, which accepts
// any.
const localPatience = 500 * time.Millisecond

// localCredentials are for a DynamoDB on this machine: those of the chain, by which it tells users
// apart, or made-up ones if the chain has none.
type localCredentials struct{ chain aws.CredentialsProvider }

// Retrieve returns credentials.
func (l *localCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if l.chain != nil {
		short, cancel := context.WithTimeout(ctx, localPatience)
		defer cancel()
		if found, err := l.chain.Retrieve(short); err == nil {
			return found, nil
		}
	}
	return credentials.NewStaticCredentialsProvider("local", "local", "").Retrieve(ctx)
}
