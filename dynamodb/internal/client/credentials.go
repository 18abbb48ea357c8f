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

// ChainCredentials are those of the SDK's own chain, with errors that [Classify] can tell from
// those of the table.
type ChainCredentials struct {
	Chain aws.CredentialsProvider // caches
	found atomic.Bool
}

// Retrieve returns credentials, or a [*credentialsError].
func (c *ChainCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.Chain.Retrieve(ctx)
	switch {
	case err == nil:
		c.found.Store(true)
		return found, nil
	case errors.Is(err, context.Canceled): // the caller has gone, which says nothing of credentials
		return found, err
	}
	return found, &credentialsError{err: err, had: c.found.Load()}
}

// credentialsError is a call that was not sent because there were no credentials.
type credentialsError struct {
	err error
	had bool // there were some before
}

// Error returns the cause's words.
func (c *credentialsError) Error() string { return c.err.Error() }

// Unwrap returns the cause.
func (c *credentialsError) Unwrap() error { return c.err }

// fault returns the error that callers see. A process that had credentials may have them again
// without help, so that this is an outage; one that never had any must be told what to do. An
// error of the instance's role, the last of the chain, is left out: it only says that nothing is
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

// noCredentials says where the SDK's chain looks, in its order, and what to do.
const noCredentials = "no AWS credentials were found in the environment, in ~/.aws, or as a role of the " +
	"container or instance (IMDS): set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run " +
	"aws sso login"

// localPatience is how long credentials for a DynamoDB on this machine are looked for: any will
// do.
const localPatience = 500 * time.Millisecond

// localCredentials are for a DynamoDB on this machine: those of the chain, which it uses to keep
// its users apart, or else some.
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
