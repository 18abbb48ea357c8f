package testkit

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir/internal/local"
)

func TestNamedDynamoDB(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, endpoint, address string
	}{
		{"127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1:8000"},
		{"http://127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1:8000"},
		{"https://db.example/", "https://db.example/", "db.example"},
		{"nonesuch:8000", "http://nonesuch:8000", "nonesuch:8000"},
	} {
		d, reason := namedDynamoDB(c.value)
		if reason != "" || d.Endpoint() != c.endpoint || d.Address() != c.address {
			t.Errorf("%s: got %v, %q, want %s at %s", c.value, d, reason, c.endpoint, c.address)
		}
	}
	for _, value := range []string{"none", "none: no Java"} {
		if d, reason := namedDynamoDB(value); d != nil || !strings.Contains(reason, value) {
			t.Errorf("%s: got %v, %q, want the reason why there is none", value, d, reason)
		}
	}
}

// A test without a server ends with the reason, and a test that names a server gets it.
func TestDynamoDBVariable(t *testing.T) {
	t.Setenv(requireVariable, "")
	t.Setenv(dynamodbVariable, "127.0.0.1:1")
	if got := DynamoDB(t).Endpoint(); got != "http://127.0.0.1:1" {
		t.Errorf("got %s, want the one that was named", got)
	}
	t.Setenv(dynamodbVariable, "none: no Java here")
	v := verdict{ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		DynamoDB(&v)
	}()
	<-done
	if !strings.Contains(v.skipped, "no Java here") {
		t.Errorf("got %q, want the test skipped with the reason", v.skipped)
	}
}

// needJava ends a test without Java, because the test starts a server even if WEIR_TEST_DYNAMODB
// names one.
func needJava(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := local.FindJava(ctx, os.Getenv); err != nil {
		Require(t, dynamodbTool, err.Error())
	}
}

// A separate server is empty, and does not answer after it was stopped.
func TestStartDynamoDB(t *testing.T) {
	t.Parallel()
	shared := DynamoDB(t)
	shared.Table(t, nil)
	ctx := bounded(t)
	needJava(ctx, t)
	server, err := StartDynamoDB(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if server.Endpoint() == shared.Endpoint() {
		t.Errorf("got %s twice", server.Endpoint())
	}
	out, err := server.Client().ListTables(ctx, &ddb.ListTablesInput{})
	if err != nil || len(out.TableNames) != 0 {
		t.Errorf("got %v, %v, want an empty server", out, err)
	}
	server.Stop()
	select {
	case <-server.Done():
	default:
		t.Error("the server has not ended")
	}
	if err := gone(ctx, server.Address()); err != nil {
		t.Errorf("%s still listens: %v", server.Address(), err)
	}
}

// If the port is in use, the error says so, and the server that has the port is not mistaken for
// the new one.
func TestStartDynamoDBPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	DynamoDB(t) // or skip
	needJava(bounded(t), t)
	server, err := StartDynamoDB(bounded(t), &DynamoDBOptions{Port: taken.Addr().(*net.TCPAddr).Port})
	if err == nil {
		server.Stop()
		t.Fatal("got a server on a port that was taken")
	}
	if !strings.Contains(err.Error(), "port") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want an error that names the port, at once", err)
	}
}

// The environment has the variables for another process, and this process records its server there.
func TestDynamoDBEnvironment(t *testing.T) {
	t.Parallel()
	d := DynamoDB(t)
	value := os.Getenv(dynamodbVariable)
	if noted, reason := namedDynamoDB(value); reason != "" || noted.Endpoint() != d.Endpoint() {
		t.Errorf("got %q in the environment, want %s", value, d.Endpoint())
	}
	all := strings.Join(d.Environment(), "\n")
	for _, want := range []string{
		dynamodbVariable + "=" + d.Endpoint(), "AWS_ENDPOINT_URL_DYNAMODB=" + d.Endpoint(), "AWS_REGION=",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("got %s, want %s in it", all, want)
		}
	}
}
