package dynamodb

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/awsconfig"
)

// TestConnectionsAreKept checks the number of idle connections, even with AWS_CA_BUNDLE set. With
// that, the SDK makes an HTTP client of its own if it is given none. It keeps ten connections, and
// a burst of calls beyond them would dial again.
func TestConnectionsAreKept(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "authorities.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(bundle, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", bundle} {
		t.Setenv("AWS_CA_BUNDLE", file)
		c, err := connect(t.Context(), "calls", &Options{Region: awsconfig.LocalRegion})
		if err != nil {
			t.Fatal(err)
		}
		built, ok := c.API.Options().HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			t.Fatalf("AWS_CA_BUNDLE=%q: the client is a %T", file, c.API.Options().HTTPClient)
		}
		transport := built.GetTransport()
		if n := transport.MaxIdleConnsPerHost; n != client.IdleConnections {
			t.Errorf("AWS_CA_BUNDLE=%q: %d connections are kept, want %d", file, n, client.IdleConnections)
		}
		if trusts := transport.TLSClientConfig.RootCAs != nil; trusts != (file != "") {
			t.Errorf("AWS_CA_BUNDLE=%q: trusts authorities of its own: %t", file, trusts)
		}
	}
}
