package testkit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/internal/local"
	"github.com/weir-limiter/weir/internal/soak"
)

const (
	// dynamodbVariable holds the address of a running DynamoDB Local.
	dynamodbVariable = "WEIR_TEST_DYNAMODB"
	// apartVariable holds the address of the one of [DynamoDBApart].
	apartVariable = "WEIR_TEST_DYNAMODB_APART"
	// noDynamoDB, instead of an address, means that there is none; a reason may follow.
	noDynamoDB = "none"
	// dynamodbTool is its name in WEIR_TEST_REQUIRE.
	dynamodbTool = "dynamodb"

	// localRegion is the region of all clients of testkit.
	localRegion = "us-east-1"
	// localKey and localSecret are credentials that the server does not check, but each key has its
	// own set of tables.
	localKey, localSecret = "local", "local"
)

// DynamoDBLocal is a DynamoDB Local that runs on this machine.
type DynamoDBLocal struct {
	endpoint string
}

// DynamoDB returns the DynamoDB Local of this process. The first test that calls it starts the
// server, fetching it if needed; the others share it, so each makes its own tables (see
// [DynamoDBLocal.Table]). The server ends with the process, even if that is killed. It cannot be
// used inside a bubble of testing/synctest.
//
// The process keeps the address in WEIR_TEST_DYNAMODB, so that the processes that it starts use the
// same server. If the variable is set to an address such as 127.0.0.1:8000 beforehand, the tests
// use that server; with "none" they use no server. The test is skipped if Java 17, Maven or the
// network is missing, see [Require].
func DynamoDB(t testing.TB) *DynamoDBLocal {
	t.Helper()
	d, reason := sharedDynamoDB(t.Context(), dynamodbVariable)
	if reason != "" {
		Require(t, dynamodbTool, reason)
	}
	return d
}

// DynamoDBApart returns a second server, which this process also starts once, for tests that add
// indexes to tables. The server has ten threads, and each table with time to live takes one of them
// until the table is deleted: with a few such tables no index is ever created.
func DynamoDBApart(t testing.TB) *DynamoDBLocal {
	t.Helper()
	if value := os.Getenv(dynamodbVariable); strings.HasPrefix(value, noDynamoDB) {
		Require(t, dynamodbTool, dynamodbVariable+" is "+value)
	}
	d, reason := sharedDynamoDB(t.Context(), apartVariable)
	if reason != "" {
		Require(t, dynamodbTool, reason)
	}
	return d
}

// sharedDynamoDB returns the server that the environment names, or starts one and records it there.
// A failure is recorded too, so that only the first of many tests waits for it.
func sharedDynamoDB(ctx context.Context, variable string) (d *DynamoDBLocal, reason string) {
	if value := os.Getenv(variable); value != "" {
		return namedDynamoDB(value)
	}
	dir, err := makeCacheFolder(dynamodbTool)
	if err != nil {
		return nil, err.Error()
	}
	// Only one process of the test run starts a server at a time, so that no two choose the same
	// free port.
	unlock, err := local.Lock(ctx, filepath.Join(dir, "start.lock"))
	if err != nil {
		return nil, err.Error()
	}
	defer unlock()
	if value := os.Getenv(variable); value != "" {
		return namedDynamoDB(value)
	}
	server, err := StartDynamoDB(ctx, &DynamoDBOptions{Brief: !soak.On()})
	value := noDynamoDB
	if err != nil {
		value += ": " + err.Error()
	} else {
		value = server.Endpoint()
	}
	if err := os.Setenv(variable, value); err != nil {
		return nil, err.Error()
	}
	return namedDynamoDB(value)
}

// namedDynamoDB parses the value of the variable.
func namedDynamoDB(value string) (d *DynamoDBLocal, reason string) {
	if value == noDynamoDB || strings.HasPrefix(value, noDynamoDB+":") {
		return nil, dynamodbVariable + " is " + value
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	return &DynamoDBLocal{value}, ""
}

// Endpoint returns the server's URL, such as http://127.0.0.1:8000.
func (d *DynamoDBLocal) Endpoint() string { return d.endpoint }

// Address returns the host and port of the endpoint.
func (d *DynamoDBLocal) Address() string {
	_, address, _ := strings.Cut(d.endpoint, "://")
	return strings.TrimSuffix(address, "/")
}

// Config returns the configuration of an SDK client for the server, see [LocalConfig].
func (d *DynamoDBLocal) Config() aws.Config { return LocalConfig(d.endpoint) }

// LocalConfig returns the configuration of an SDK client for a server on this machine: the
// endpoint, a region, credentials, and an HTTP client that keeps a connection for each of many
// callers and uses no proxy.
func LocalConfig(endpoint string) aws.Config {
	return aws.Config{
		Region:       localRegion,
		Credentials:  credentials.NewStaticCredentialsProvider(localKey, localSecret, ""),
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   newHTTPClient(nil),
	}
}

// Client returns an SDK client for the server. The options may be those of a [Counter] or [Faults].
func (d *DynamoDBLocal) Client(options ...func(*ddb.Options)) *ddb.Client {
	return ddb.NewFromConfig(d.Config(), options...)
}

// Environment returns the variables with which the SDK of another process, in any language, reaches
// the server, in the form of [os.Environ].
func (d *DynamoDBLocal) Environment() []string {
	return []string{
		dynamodbVariable + "=" + d.endpoint,
		"AWS_ENDPOINT_URL_DYNAMODB=" + d.endpoint,
		"AWS_REGION=" + localRegion, "AWS_DEFAULT_REGION=" + localRegion,
		"AWS_ACCESS_KEY_ID=" + localKey, "AWS_SECRET_ACCESS_KEY=" + localSecret,
		"AWS_EC2_METADATA_DISABLED=true",
		"NO_PROXY=127.0.0.1,::1,localhost", "no_proxy=127.0.0.1,::1,localhost",
	}
}

// answers waits until the server answers a request.
func (d *DynamoDBLocal) answers(ctx context.Context) error {
	client := d.Client(func(o *ddb.Options) { o.Retryer = aws.NopRetryer{} })
	for {
		_, err := client.ListTables(ctx, &ddb.ListTablesInput{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}
