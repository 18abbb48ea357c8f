package cli

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/console"
)

// fakeLimits answers every apply of a limits file in the same way.
type fakeLimits struct {
	httpapi.LimitsAdmin

	apply func(f *httpapi.LimitsFile) (*httpapi.LimitsPlan, error)
}

func (l *fakeLimits) ApplyLimits(
	_ context.Context, f *httpapi.LimitsFile,
) (*httpapi.LimitsPlan, error) {
	return l.apply(f)
}

// applyTo runs weir limits apply on a file against a server with the limits.
func applyTo(ctx context.Context, t *testing.T, limits httpapi.LimitsAdmin, text string) result {
	t.Helper()
	server := httptest.NewServer(httphandler.New(nil, &httphandler.Options{Limits: limits}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "team.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	streams := console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	code := Run(ctx, []string{"limits", "apply", file, "--server", server.URL}, streams, os.Getenv)
	return result{code, out.String(), errs.String()}
}

// TestApplyBehind checks that an apply fails if buckets in use could not follow, says whose they
// are and what to do, and prints the changes nevertheless.
func TestApplyBehind(t *testing.T) {
	t.Parallel()
	r := applyTo(t.Context(), t, &fakeLimits{apply: func(*httpapi.LimitsFile) (*httpapi.LimitsPlan, error) {
		return &httpapi.LimitsPlan{
			Changes: []httpapi.LimitsChange{{
				Action: "create", Path: "resources.r.limits.rpm", Level: "resource", Resource: "r",
				Limit: "rpm", Is: "rpm:5",
			}},
			Unmanaged: []httpapi.LimitsChange{}, Applied: 1,
			Behind: &httpapi.LimitsBehind{
				Count: 12, Names: []string{"acme", "bot"}, Reason: "acme on r: throttled",
			},
		}, nil
	}}, "version: 1\n")
	want := "weir: the limits are set, but buckets in use of 12 entities do not have them yet: acme, bot " +
		"and 10 more (acme on r: throttled). Programs with the Python library go by the buckets: " +
		"apply the file again, and it goes on with them\n"
	if r.code != console.ExitFailed || r.err != want || !strings.Contains(r.out, "resources.r.limits.rpm") {
		t.Errorf("got exit code %d, %q and %q, want 1, the changes and %q", r.code, r.out, r.err, want)
	}
}

// TestApplyInterrupted interrupts the command while a server applies the file.
func TestApplyInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	left := make(chan struct{})
	l := &fakeLimits{apply: func(*httpapi.LimitsFile) (*httpapi.LimitsPlan, error) {
		interrupt()
		<-left
		return &httpapi.LimitsPlan{}, nil
	}}
	r := applyTo(ctx, t, l, "version: 1\n")
	close(left)
	if r.code != console.ExitFailed || !strings.HasPrefix(r.err, "weir: interrupted: the server has not "+
		"answered yet; it goes on") || !strings.Contains(r.err, "weir limits plan") {
		t.Errorf("got exit code %d and %q, want 1 and that the server goes on", r.code, r.err)
	}
}

// TestApplyTooLarge sends a server a file that is larger than what it takes in one request.
func TestApplyTooLarge(t *testing.T) {
	t.Parallel()
	r := applyTo(t.Context(), t, &fakeLimits{}, "version: 1\n"+strings.Repeat("# much\n", 200_000))
	if r.code != console.ExitFailed || !strings.Contains(r.err, "team.yaml: is too large for the server") ||
		!strings.Contains(r.err, "at most 1048576 bytes") || !strings.Contains(r.err, "--max-body") {
		t.Errorf("got exit code %d and %q, want 1, the file and the server's flag", r.code, r.err)
	}
}
