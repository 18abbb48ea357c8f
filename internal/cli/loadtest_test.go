package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/loadtest"
)

func loadReported(t *testing.T, out string) *loadtestReport {
	t.Helper()
	report := &loadtestReport{}
	if err := json.Unmarshal([]byte(out), report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return report
}

// TestLoadtestInterrupted: an interrupt settles what is under way and reports what there was, in
// either loop.
func TestLoadtestInterrupted(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"closed": {"--concurrency", "20"}, "open": {"--rate", "500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			var reserved atomic.Int64
			url, limiter := liveServer(t, nil, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(w, r)
					if r.URL.Path == "/v1/reserve" && reserved.Add(1) == 10 {
						cancel()
					}
				})
			})
			var out, errs bytes.Buffer
			code := Run(ctx, append([]string{
				"loadtest", "tenant-1", "llm", "rpm=1", "--server", url, "--think", "59m", "--duration", "2m",
				"-o", "json",
			}, args...), console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, noEnv)
			if code != console.ExitFailed || errs.String() != "weir: interrupted\n" {
				t.Errorf("got exit code %d and %q, want 1 and an interruption", code, errs.String())
			}
			r := loadReported(t, out.String())
			if r.Stopped != "interrupted" || r.Leases.Taken < 10 || r.Leases.Settled != r.Leases.Taken ||
				r.Leases.Left != 0 || r.Loop != name || r.ElapsedMS >= r.DurationMS || !slotsFree(t, limiter) {
				t.Errorf("got %+v, want every lease settled", r)
			}
		})
	}
}

// TestLoadtestGone: a server that goes away ends the run after a hundred errors, with a report.
func TestLoadtestGone(t *testing.T) {
	t.Parallel()
	var reserved atomic.Int64
	url, _ := liveServer(t, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/reserve" && reserved.Add(1) > 20 {
				w.WriteHeader(http.StatusForbidden) // a proxy's, which is not repeated
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

// TestLoadtestToken: a bearer token comes from the environment or a file; without one the server's
// refusal ends the run before anything is sent.
func TestLoadtestToken(t *testing.T) {
	t.Parallel()
	const token = "a-bearer-token-of-the-test"
	authenticate := func(given string) (httphandler.Identity, bool) {
		return httphandler.Identity{Name: "t", Role: httphandler.RoleCall}, given == token
	}
	url, _ := liveServer(t, &httphandler.Options{Authenticate: authenticate}, nil)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		want string
	}{
		{"none", nil, []string{"--server", url}, console.ExitFailed, "weir: permission denied"},
		{
			"a wrong one", map[string]string{connect.TokenEnv: "another-bearer-token"}, []string{"--server", url},
			console.ExitFailed, "weir: permission denied",
		},
		{"from the environment", map[string]string{connect.TokenEnv: token, connect.ServerEnv: url}, nil, console.ExitDone, ""},
		{"from a file", nil, []string{"--token-file", file, "--server", url}, console.ExitDone, ""},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"loadtest", "tenant-1", "llm", "rpm=1", "--duration", "50ms"}, c.args...)
		code := Run(t.Context(), args, console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
			func(name string) string { return c.env[name] })
		if code != c.code || !strings.HasPrefix(errs.String(), c.want) || c.want == "" && errs.Len() > 0 {
			t.Errorf("%s: got exit code %d and %q, want %d and %q", c.name, code, errs.String(), c.code, c.want)
		}
		if (out.Len() > 0) != (c.code == console.ExitDone) || strings.Contains(errs.String()+out.String(), token) {
			t.Errorf("%s: got %q, want a report only where it ran, and no bearer token", c.name, out.String())
		}
	}
}

// TestLoadtestTable: what a report says to people.
func TestLoadtestTable(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	q := loadtest.Quantiles{P50: 1234 * time.Nanosecond, P90: 98765 * time.Nanosecond, P95: ms, P99: 123456 * time.Microsecond,
		P999: 12345 * ms, Max: 61 * time.Second}
	m := &loadtest.Report{
		Options: loadtest.Options{
			Duration: 10 * time.Second, Warmup: time.Second, Concurrency: 1, Rate: 1000, Seed: 7,
			Think: loadtest.DurationRange{Least: ms, Most: 2 * ms},
		},
		Elapsed: 2 * time.Second, Served: 4 * time.Second,
		Rows: []loadtest.Row{
			{Verb: loadtest.Reserve, Result: loadtest.Admitted, Count: 1000, Latency: q},
			{Verb: loadtest.Reserve, Result: loadtest.Failed, Count: 30, Latency: q},
		},
		DeniedBy: []loadtest.DeniedCount{
			{DeniedBy: loadtest.DeniedBy{Resource: "llm", Limit: "r\x1bpm", Kind: weir.Bucket, Parent: true}, Count: 1500},
			{DeniedBy: loadtest.DeniedBy{Contended: true}, Count: 2},
		},
		Errors:  []loadtest.ErrorCount{{Verb: loadtest.Reserve, Code: weir.Unavailable, Count: 30}},
		Planned: 2000, Started: 1030, Unsent: 970, Late: 5, LateMax: 1234567 * time.Nanosecond, Degraded: 1,
		Taken: 1000, Settled: 990, Left: 10, Stopped: context.Canceled,
	}
	texts := []string{"a llm", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	var b bytes.Buffer
	newLoadtestReport(m, "http://x", texts).table(&b)
	want := `server     http://x
requests   a llm
           b
           c
           d
           e
           f
           g
           h
           and 2 more
open loop  1,000 calls a second, at most 1 request under way
measured   2s of 10s after 1s of warm-up, think 1ms..2ms
seed       7

LATENCY  RESULT    COUNT  PER SECOND     P50     P90  P95    P99   P99.9   MAX
reserve  admitted  1,000         250  1.23µs  98.8µs  1ms  123ms  12.35s  1m1s
reserve  failed       30         7.5  1.23µs  98.8µs  1ms  123ms  12.35s  1m1s

SERVICE  RESULT    COUNT  PER SECOND  P50  P90  P95  P99  P99.9  MAX
reserve  admitted  1,000         250   0s   0s   0s   0s     0s   0s
reserve  failed       30         7.5   0s   0s   0s   0s     0s   0s

DENIED BY      RESOURCE  KIND    OF      DENIED
r\x1bpm        llm       bucket  parent   1,500
other writers                                 2

calls     1,030, 258 a second: 1,000 admitted, 0 denied, 30 failed
planned   2,000, 1,000 a second: 970 never sent, 5 more than 20ms late, at most 2ms
errors    reserve: 30 unavailable
degraded  1 call was admitted without being charged: the store did not answer
leases    1,000 taken, 990 settled, 10 left
stopped   interrupted
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLoadLine: how far a run is, also at its ends.
func TestLoadLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    loadtest.Progress
		want string
	}{
		{loadtest.Progress{Total: 10 * time.Second}, "  0 %  ----------  0 calls  0/s  0 denied  0 failed  10s left"},
		{
			loadtest.Progress{Elapsed: 2500 * time.Millisecond, Total: 10 * time.Second, Calls: 2500, Denied: 3, Failed: 1},
			" 25 %  ##--------  2,500 calls  1,000/s  3 denied  1 failed  8s left",
		},
		{
			loadtest.Progress{Elapsed: 11 * time.Second, Total: 10 * time.Second, Calls: 5},
			"100 %  ##########  5 calls  0.5/s  0 denied  0 failed  settling",
		},
	} {
		if got := loadLine((console.Style{}), c.p); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
