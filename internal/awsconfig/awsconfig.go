// Package awsconfig loads the configuration of the AWS SDK: region and credentials from the chain
// that every AWS tool reads, or made-up ones for a service on this machine, which accepts any.
package awsconfig

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/weir-limiter/weir"
)

// LocalRegion is the region that signs calls to a service on this machine, which has none.
const LocalRegion = "us-east-1"

// CheckEndpoint returns an error for the address of a service, in the field with that name, that is
// not a plain address, and reports whether it is on this machine. An empty one is the default.
func CheckEndpoint(field, endpoint string) (local bool, err error) {
	if endpoint == "" {
		return false, nil
	}
	if strings.Contains(endpoint, "@") { // keep a password out of the error
		return false, weir.NewError(weir.Invalid, field, "(hidden)",
			"must not contain a user or password: credentials come from the AWS SDK's default chain")
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return false, weir.NewError(weir.Invalid, field, endpoint,
			"must be an address like http://127.0.0.1:8000")
	case strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "":
		return false, weir.NewError(weir.Invalid, field, u.Scheme+"://"+u.Host,
			"must have only a scheme, a host and a port")
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback(), nil
}

// Load returns the configuration for a region, or for that of the chain if region is empty. Services
// on this machine get a region and credentials even if the chain has none.
func Load(
	ctx context.Context, region string, local bool, more ...func(*config.LoadOptions) error,
) (aws.Config, error) {
	if region != "" {
		more = append(more, config.WithRegion(region))
	}
	if local { // a chain without credentials is not worth a log line then
		more = append(more, config.WithLogger(logging.Nop{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, more...)
	if err != nil || !local {
		return cfg, err
	}
	cfg.Credentials = aws.NewCredentialsCache(&localCredentials{chain: cfg.Credentials})
	if cfg.Region == "" {
		cfg.Region = LocalRegion
	}
	return cfg, nil
}

// localPatience bounds the search for credentials for a service on this machine.
const localPatience = 500 * time.Millisecond

// localCredentials are those of the chain, by which a service on this machine tells users apart, or
// made-up ones if the chain has none.
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

// NoCredentials says where the SDK's chain looks, in its order, and what the operator can do.
const NoCredentials = "no AWS credentials were found in the environment, in ~/.aws, or as a role of the " +
	"container or instance (IMDS): set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run " +
	"aws sso login"

// IsUnconfigured reports whether an error of the chain is one of the instance's role, its last link:
// then it only says that nothing is configured.
func IsUnconfigured(err error) bool {
	last, ok := errors.AsType[*smithy.OperationError](err)
	return ok && last.Service() == "ec2imds"
}

// IsPermission reports whether an error code says that the caller is unknown or not allowed to make
// the call.
func IsPermission(code string) bool {
	switch strings.TrimSuffix(code, "Exception") {
	case "AccessDenied", "UnrecognizedClient", "InvalidSignature", "MissingAuthenticationToken",
		"IncompleteSignature", "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch",
		"ExpiredToken", "OptInRequired", "NotAuthorized":
		return true
	}
	return false
}
