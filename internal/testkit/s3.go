package testkit

import (
	"net/http"
	"testing"
)

// S3 starts a moto server with an empty S3 bucket, and returns the server's URL; see [Moto].
// Requests name the bucket in their path.
func S3(t testing.TB, bucket string) string {
	t.Helper()
	endpoint := Moto(t)
	put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, endpoint+"/"+bucket, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := newHTTPClient(nil).Do(put)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("make the bucket %s: %s, %v", bucket, answer.Status, err)
	}
	return endpoint
}
