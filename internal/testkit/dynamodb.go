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

	"github.com/weir-limiter/weir/internal/soak"
)

const (
	// dynamodbVariable holds the address of a DynamoDB Local that runs.
	dynamodbVariable = "WEIR_TEST_DYNAMODB"
	// noDynamoDB, in its place, says that there is none; a reason may follow.
	noDynamoDB = "none"
	// dynamodbTool is how WEIR_TEST_REQUIRE calls it.
	dynamodbTool = "dynamodb"

	// localRegion is the region that all of testkit's clients name.
	localRegion = "us-east-1"
	// localKey and localSecret are credentials that nobody checks, but one key has one set of
	// tables.
	localKey, localSecret = "local", "local"
)

// DynamoDBLocal is a DynamoDB Local that runs on this machine.
type DynamoDBLocal struct {
	endpoint string
}

// DynamoDB returns the DynamoDB Local of this process. The first test that asks starts it,
// fetching it if need be; the others share it, so each makes tables of its own (see
// [DynamoDBLocal.Table]). It ends with the process, however that ends. It cannot be used inside a
// bubble of testing/synctest.
//
// WEIR_TEST_DYNAMODB is where the process keeps the address, so that the processes it starts use
// the same one. Who sets it, to an address such as 127.0.0.1:8000, has the tests use that server.
// With "none" there is none. The test is skipped where Java 17, Maven or the network is missing,
// see [Require].
func DynamoDB(t testing.TB) *DynamoDBLocal {
	t.Helper()
	d, reason := sharedDynamoDB(t.Context())
	if reason != "" {
		Require(t, dynamodbTool, reason)
	}
	return d
}

// sharedDynamoDB returns the server that the environment names, or starts one and names it there.
// A failure is noted there as well, so that only the first of many tests waits for it.
func sharedDynamoDB(ctx context.Context) (d *DynamoDBLocal, reason string) {
	if value := os.Getenv(dynamodbVariable); value != "" {
		return namedDynamoDB(value)
	}
	dir, err := makeCacheFolder(dynamodbTool)
	if err != nil {
		return nil, err.Error()
	}
	// One at a time, in all processes of the test run: nobody else starts on the port that was
	// found free, and the others find the address.
	unlock, err := lock(filepath.Join(dir, "start.lock"))
	if err != nil {
		return nil, err.Error()
	}
	defer unlock()
	if value := os.Getenv(dynamodbVariable); value != "" {
		return namedDynamoDB(value)
	}
	server, err := StartDynamoDB(ctx, &DynamoDBOptions{Brief: !soak.On()})
	value := noDynamoDB
	if err != nil {
		value += ": " + err.Error()
	} else {
		value = server.Endpoint()
	}
	if err := os.Setenv(dynamodbVariable, value); err != nil {
		return nil, err.Error()
	}
	return namedDynamoDB(value)
}

// namedDynamoDB reads the variable's value.
func namedDynamoDB(value string) (d *DynamoDBLocal, reason string) {
	if value == noDynamoDB || strings.HasPrefix(value, noDynamoDB+":") {
		return nil, dynamodbVariable + " is " + value
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	return &DynamoDBLocal{value}, ""
}

// Endpoint is its URL, as in http://127.0.0.1:8000.
func (d *DynamoDBLocal) Endpoint() string { return d.endpoint }

// Address is the host and port of its endpoint.
func (d *DynamoDBLocal) Address() string {
	_, address, _ := strings.Cut(d.endpoint, "://")
	return strings.TrimSuffix(address, "/")
}

// Config is what an SDK client needs to reach it, see [LocalConfig].
func (d *DynamoDBLocal) Config() aws.Config { return LocalConfig(d.endpoint) }

// LocalConfig is what an SDK client needs to reach a server on this machine: the endpoint, a
// region, credentials, and an HTTP client that keeps a connection for each of many callers and
// asks no proxy.
func LocalConfig(endpoint string) aws.Config {
	return aws.Config{
		Region:       localRegion,
		Credentials:  credentials.NewStaticCredentialsProvider(localKey, localSecret, ""),
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   newHTTPClient(nil),
	}
}

// Client is an SDK client for it. The options may be a [Counter]'s or a [Faults]'s.
func (d *DynamoDBLocal) Client(options ...func(*ddb.Options)) *ddb.Client {
	return ddb.NewFromConfig(d.Config(), options...)
}

// Environment is what another process needs so that its SDK, of whatever language, reaches the
// server: variables in the form of [os.Environ].
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
