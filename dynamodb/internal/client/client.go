// Package client makes the calls to one DynamoDB table: connections, credentials, repetition, the
// clock of the answers, batches and queries, and what became of a write.
//
// A write without an answer may have been applied, so it is never sent again and never reported as
// failed: its outcome is [WriteUnknown], and the rooms above decide which side is safe. All other
// errors are a [weir.Error].
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/weir-limiter/weir"
)

// IdleConnections is how many connections are kept open for the next calls. With the SDK's own
// ten, every burst of callers would dial again.
const IdleConnections = 256

// Client makes the calls to one table. All methods may be called at once.
type Client struct {
	API       *ddb.Client
	TableName string
	Clock     *Clock
	Now       func() time.Time
	// readOnly refuses every call that writes.
	readOnly bool
}

// Options say how a table is reached. The zero value means all defaults; see the store's
// options.
type Options struct {
	Region   string
	Endpoint string
	Config   *aws.Config
	HTTP     *http.Client
	// Tune changes the SDK's options after everything else.
	Tune     []func(*ddb.Options)
	ReadOnly bool
	Now      func() time.Time
}

// New returns a client for a table. It sends nothing yet.
func New(ctx context.Context, table string, o *Options) (*Client, error) {
	if reason := tableNameFault(table); reason != "" {
		return nil, Fault(weir.Invalid, "store.table", table, reason)
	}
	local, err := checkEndpoint(o.Endpoint)
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
		// DynamoDB Local sends 0 as the checksum of every refusal, and the SDK would complain of
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
			"is set nowhere: give it in the store's URL or in AWS_REGION")
	}
	return c, nil
}

// load finds the SDK's configuration.
func (o *Options) load(ctx context.Context, local bool) (*aws.Config, error) {
	if o.Config != nil {
		return o.Config, nil
	}
	// Handed in here, the client also learns of AWS_CA_BUNDLE, for which the SDK would make one of
	// its own, with ten connections.
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(newHTTPClient())}
	if o.Region != "" {
		options = append(options, config.WithRegion(o.Region))
	}
	if local { // whether the chain finds credentials does not matter then
		options = append(options, config.WithLogger(logging.Nop{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, &weir.Error{
			Code: weir.Invalid, Reason: "the configuration of the AWS SDK cannot be loaded", Err: err,
		}
	}
	if local {
		if cfg.Region == "" {
			cfg.Region = LocalRegion
		}
		cfg.Credentials = aws.NewCredentialsCache(&localCredentials{chain: cfg.Credentials})
		return &cfg, nil
	}
	if cfg.Credentials != nil {
		cfg.Credentials = &ChainCredentials{Chain: cfg.Credentials}
	}
	return &cfg, nil
}

func newHTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = 0 // no bound beside that of the one host
		t.MaxIdleConnsPerHost = IdleConnections
	})
}

// watch puts weir's middleware into every call: around the repetition, around each attempt, and
// just before the HTTP client.
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

// LocalRegion is the region of a DynamoDB on this machine, which has none.
const LocalRegion = "us-east-1"

// checkEndpoint refuses what is no address of a DynamoDB, and reports whether it is on this
// machine.
func checkEndpoint(endpoint string) (local bool, err error) {
	if endpoint == "" {
		return false, nil
	}
	if strings.Contains(endpoint, "@") { // which stays out of the error
		return false, Fault(weir.Invalid, "store.endpoint", "(hidden)",
			"must have no user and password: credentials come from the SDK's own chain")
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return false, Fault(weir.Invalid, "store.endpoint", endpoint,
			"must be an address like http://127.0.0.1:8000")
	case strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "":
		return false, Fault(weir.Invalid, "store.endpoint", u.Scheme+"://"+u.Host,
			"must have nothing but a scheme, a host and a port")
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback(), nil
}

// The bounds of a table's name.
const (
	minTableName = 3
	maxTableName = 255
)

// tableNameFault says what is wrong with a table's name, or nothing.
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
