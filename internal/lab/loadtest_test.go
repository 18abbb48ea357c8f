package lab

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
)

func loadReported(t *testing.T, out string) *loadtestReport {
	t.Helper()
	report := &loadtestReport{}
	if err := json.Unmarshal([]byte(out), report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return report
}

// TestLoadtestInterrupted checks that an interrupt settles all live leases and prints the report of
// the calls until then, in either loop.
func TestLoadtestInterrupted(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"closed": {"--concurrency", "20"}, "open": {"--rate", "500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			url, limiter := startAnd(t, cancel)
			ran := runIn(ctx, noEnv, append([]string{
				"loadtest", "tenant-1", "llm", "rpm=1", "--server", url, "--think", "59m", "--duration", "2m",
				"-o", "json",
			}, args...)...)
			if ran.code != console.ExitFailed || ran.err != "weir: interrupted\n" {
				t.Errorf("got exit code %d and %q, want 1 and an interruption", ran.code, ran.err)
			}
			r := loadReported(t, ran.out)
			if r.Stopped != "interrupted" || r.Leases.Taken < 10 || r.Leases.Settled != r.Leases.Taken ||
				r.Leases.Left != 0 || r.Loop != name || r.ElapsedMS >= r.DurationMS || !liveserver.SlotsFree(t, limiter) {
				t.Errorf("got %+v, want every lease settled", r)
			}
		})
	}
}

// TestLoadtestServerGone checks that a run against a server that goes away ends after a hundred errors,
// with a report.
func TestLoadtestServerGone(t *testing.T) {
	t.Parallel()
	var reserved atomic.Int64
	url, _ := liveserver.Start(t, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/reserve" && reserved.Add(1) > 20 {
				w.WriteHeader(http.StatusForbidden) // as from a proxy; the client does not repeat it
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	r := runWeir(t, "loadtest", "tenant-1", "llm", "rpm=1", "--server", url, "--duration", "1h",
		"--concurrency", "50", "-o", "json")
	want := "weir: gave up after 100 errors in a row, the last one: reserve: "
	if r.code != console.ExitFailed || !strings.HasPrefix(r.err, want) {
		t.Errorf("got exit code %d and %q, want that it gave up", r.code, r.err)
	}
	report := loadReported(t, r.out)
	if c := report.Calls; c.Admitted != 20 || c.Denied != 0 || c.Failed < 100 || len(report.Errors) != 1 ||
		report.Errors[0].Verb != "reserve" || report.Errors[0].Count != c.Failed ||
		!strings.HasPrefix(report.Stopped, "gave up") {
		t.Errorf("got %+v, want 20 admitted and the others failed", report)
	}
}

// TestLoadtestToken checks that a bearer token is read from the environment or a file, and that a
// run without one ends with the server's refusal before its first call.
func TestLoadtestToken(t *testing.T) {
	t.Parallel()
	testToken(t, true, "loadtest", "tenant-1", "llm", "rpm=1", "--duration", "50ms")
}
