package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// unreachable is a transport that fails the test if a request is sent.
type unreachable struct{ t *testing.T }

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	u.t.Errorf("%s was sent without credentials", r.Header.Get("X-Amz-Target"))
	return nil, errors.New("unreachable")
}

// withoutCredentials removes every source of credentials from the environment.
func withoutCredentials(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "") // so that it is restored
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// TestMissingCredentials checks the error of a process without credentials: it says where the SDK
// looked and what to do, and it is not an outage for which a policy would admit requests.
func TestMissingCredentials(t *testing.T) {
	withoutCredentials(t)
	o := &Options{Region: "us-east-1", HTTP: &http.Client{Transport: unreachable{t}}}
	table := &Table{Name: "limits", Options: o}
	for what, call := range map[string]func() error{
		"open": func() error {
			_, err := Open(t.Context(), "limits", o)
			return err
		},
		"describe": func() error {
			_, err := table.Describe(t.Context())
			return err
		},
		"create": func() error {
			_, err := table.Create(t.Context())
			return err
		},
		"register": func() error {
			_, _, err := table.RegisterNamespace(t.Context(), "prod")
			return err
		},
	} {
		err := call()
		wantError(t, err, weir.PermissionDenied, "", "no AWS credentials were found")
		if err == nil || errors.Is(err, weir.Unavailable) {
			t.Errorf("%s: got %v", what, err)
			continue
		}
		for _, want := range []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "IMDS", "aws sso login"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", what, err, want)
			}
		}
		if n := len(err.Error()); n > 240 {
			t.Errorf("%s: %d characters: %v", what, n, err)
		}
	}
}

// failingChain returns credentials until it fails.
type failingChain struct{ err error }

func (f *failingChain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if f.err != nil {
		return aws.Credentials{}, f.err
	}
	return credentials.NewStaticCredentialsProvider("id", "secret", "").Retrieve(ctx)
}

// TestCredentialsNotRenewed checks that credentials that cannot be renewed for a while are an
// outage, and that a caller that leaves does not get a missing-credentials error.
func TestCredentialsNotRenewed(t *testing.T) {
	t.Parallel()
	chain := &failingChain{}
	c := &client.ChainCredentials{Chain: chain}
	get := func() error {
		_, err := c.Retrieve(t.Context())
		return client.Classify(err)
	}
	chain.err = errors.New("no role")
	if err := get(); !errors.Is(err, weir.PermissionDenied) || !errors.Is(err, chain.err) {
		t.Errorf("at first: got %v, want permission denied", err)
	}
	chain.err = fmt.Errorf("no EC2 IMDS role found, %w", &smithy.OperationError{
		ServiceID: "ec2imds", OperationName: "GetMetadata", Err: errors.New("the end of the chain")})
	if err := get(); !errors.Is(err, weir.PermissionDenied) || strings.Contains(err.Error(), "ec2imds") {
		t.Errorf("nothing is configured: got %v, want permission denied without what IMDS said", err)
	}
	chain.err = context.Canceled
	if err := get(); !errors.Is(err, weir.Unavailable) {
		t.Errorf("cancelled: got %v, want unavailable", err)
	}
	chain.err = nil
	if err := get(); err != nil {
		t.Errorf("found: got %v", err)
	}
	chain.err = errors.New("the role's metadata did not answer")
	err := get()
	if !errors.Is(err, weir.Unavailable) || !strings.Contains(err.Error(), "cannot be renewed") {
		t.Errorf("later: got %v, want unavailable", err)
	}
}
