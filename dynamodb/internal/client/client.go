// Package client makes the calls to one DynamoDB table. It sets up the SDK's client (connections,
// credentials, retries, the comparison of clocks), builds expressions, batches, queries and
// transactions, and classifies errors.
//
// Three pieces of middleware see each call, from the outside in: callMiddleware sees the call with
// all its attempts, attemptMiddleware sees each attempt, and sendMiddleware sees the attempt just
// before the HTTP client. Together they find out whether a failed write may have been applied. Such
// a write is not sent again and is not reported as failed: its outcome is [WriteUnknown], and the
// packages above decide which side is safe. [Classify] turns all other errors into a [weir.Error].
//
// [Tasks] counts the calls and the background work of a store, so that closing the store can wait
// for them.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

// IdleConnections is the number of idle connections that are kept open. The SDK keeps ten; with
// that, every burst of callers would dial again.
const IdleConnections = 256

// Client makes the calls to one table. All methods may be called concurrently.
type Client struct {
	API       *ddb.Client
	TableName string
	Clock     *Clock
	Now       func() time.Time
	// readOnly makes every call that writes fail.
	readOnly bool
}

// Options say how a table is reached. The zero value means all defaults; see the options of package
// dynamodb.
type Options struct {
	Region   string
	Endpoint string
	Config   *aws.Config
	HTTP     *http.Client
	// Tune changes the SDK's options after all others.
	Tune     []func(*ddb.Options)
	ReadOnly bool
	Now      func() time.Time
}

// New returns a client for a table. It sends nothing yet.
func New(ctx context.Context, table string, o *Options) (*Client, error) {
	if reason := tableNameFault(table); reason != "" {
		return nil, Fault(weir.Invalid, "store.table", table, reason)
	}
	local, err := awsconfig.CheckEndpoint("store.endpoint", o.Endpoint)
	if err != nil {
		return nil, err
	}
	c := &Client{TableName: table, Clock: &Clock{}, Now: o.Now, readOnly: o.ReadOnly}
	if c.Now == nil {
		c.Now = time.Now
	}
	cfg, err := o.load(ctx, local)
	if err != nil {
		return nil, err
	}
	c.API = ddb.NewFromConfig(*cfg, func(so *ddb.Options) {
		if o.Region != "" {
			so.Region = o.Region
		}
		if o.Endpoint != "" {
			so.BaseEndpoint = &o.Endpoint
		}
		if o.HTTP != nil {
			so.HTTPClient = o.HTTP
		} else if cfg.HTTPClient == nil {
			so.HTTPClient = newHTTPClient()
		}
		so.Retryer = newRetryer()
		// DynamoDB Local sends 0 as the checksum of a refusal, and the SDK would log a warning for
		// each.
		so.DisableValidateResponseChecksum = local
		so.APIOptions = append(so.APIOptions, c.watch)
	}, func(so *ddb.Options) {
		for _, tune := range o.Tune {
			tune(so)
		}
	})
	if c.API.Options().Region == "" {
		return nil, Fault(weir.Invalid, "store.region", "",
			"is not set: give it in the store's URL or in AWS_REGION")
	}
	return c, nil
}

// load returns the SDK's configuration.
func (o *Options) load(ctx context.Context, local bool) (*aws.Config, error) {
	if o.Config != nil {
		return o.Config, nil
	}
	// Pass the client in, so that the SDK applies AWS_CA_BUNDLE to it. Otherwise the SDK would make
	// a client of its own, with ten idle connections.
	cfg, err := awsconfig.Load(ctx, o.Region, local, config.WithHTTPClient(newHTTPClient()))
	if err != nil {
		return nil, &weir.Error{
			Code: weir.Invalid, Reason: "the configuration of the AWS SDK cannot be loaded", Err: err,
		}
	}
	if cfg.Credentials != nil && !local {
		cfg.Credentials = &ChainCredentials{Chain: cfg.Credentials}
	}
	return &cfg, nil
}

func newHTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = 0 // unlimited, because there is only one host
		t.MaxIdleConnsPerHost = IdleConnections
	})
}

// watch adds weir's middleware to a call: around the retries, around each attempt, and just before
// the HTTP client.
func (c *Client) watch(stack *middleware.Stack) error {
	watched := &attemptMiddleware{clock: c.Clock, now: c.Now}
	if err := errors.Join(
		stack.Finalize.Insert(&callMiddleware{readOnly: c.readOnly}, "Retry", middleware.Before),
		stack.Finalize.Insert(watched, "Retry", middleware.After),
		stack.Deserialize.Add(sendMiddleware{}, middleware.After),
	); err != nil {
		return fmt.Errorf("weir: watch calls: %w", err)
	}
	return nil
}

// The bounds of a table's name.
const (
	minTableName = 3
	maxTableName = 255
)

// tableNameFault returns the reason why a name cannot be a table's; empty if it can.
func tableNameFault(name string) string {
	if len(name) < minTableName || len(name) > maxTableName {
		return "must be the name of a table, of 3 to 255 characters"
	}
	for _, r := range name {
		if r > 'z' || !strings.ContainsRune(tableNameCharacters, r) {
			return fmt.Sprintf("must not contain %q", r)
		}
	}
	return ""
}

const tableNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
