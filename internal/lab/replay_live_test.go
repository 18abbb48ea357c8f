package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/lab/replay"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
)

// maxInARow is the number of requests in a row that may fail.
const maxInARow = 100

// liveTrace writes a trace with a number of calls of 100 tokens, one second apart.
func liveTrace(t *testing.T, calls int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range calls {
		fmt.Fprintf(&b, "%s,90,10\n", at.Add(time.Duration(i)*time.Second).Format("2006-01-02 15:04:05"))
	}
	name := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func replayReported(t *testing.T, out string) *replay.Report {
	t.Helper()
	report := &replay.Report{}
	if err := json.Unmarshal([]byte(out), report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return report
}

// TestReplayServer checks that calls have the same results against a server as in virtual time, and
// that every lease is settled.
func TestReplayServer(t *testing.T) {
	t.Parallel()
	url, limiter := liveserver.Start(t, nil, nil)
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(liveserver.Limits), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"replay", liveTrace(t, 150), "--entities", "2", "--seed", "3", "--latency", "2s", "-o", "json",
	}
	got := runWeir(t, append(args, "--server", url, "--speed", "1000")...)
	want := runWeir(t, append(args, "--limits", file)...)
	if got.code != console.ExitDone || got.err != "" || want.code != console.ExitDone {
		t.Fatalf("got exit codes %d and %d: %s%s", got.code, want.code, got.err, want.err)
	}
	live, virtual := replayReported(t, got.out), replayReported(t, want.out)
	if live.Totals.Admitted != 80 || live.Totals.Denied != 70 || live.Totals.Errors != 0 {
		t.Errorf("got %+v, want 80 admitted and 70 denied", live.Totals)
	}
	for i, l := range live.Limits {
		v := virtual.Limits[i]
		if l.Entity != v.Entity || l.Limit != v.Limit || l.Admitted != v.Admitted ||
			l.Denied != v.Denied || l.Unit == "units" && l.Used.Cmp(v.Used) != 0 {
			t.Errorf("got %+v\nwant %+v", l, v)
		}
	}
	if l := live.Live; l == nil || l.Server != url || l.Speed != 1000 || l.Sent != 150 ||
		l.Unsettled != 0 || len(l.Errors) != 0 || l.Stopped != "" ||
		live.LimitsFile != "" || virtual.Live != nil {
		t.Errorf("got %+v, want what belongs to a server", l)
	}
	if !liveserver.SlotsFree(t, limiter) {
		t.Error("got slots that are still occupied, want all leases settled")
	}
	r := runWeir(t, "replay", liveTrace(t, 3), "--server", url, "--speed", "1000000",
		"--entities", "2")
	for _, want := range []string{
		"server    " + url + ", 1,000,000 times as fast as recorded\n", "sent  3 calls, ",
		"\nENTITY    LIMIT     KIND         ADMITTED  DENIED ", "\nerrors    0\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("got\n%s\nwant %q in it", r.out, want)
		}
	}
}

// TestReplayServerInterrupted checks that an interrupt settles all live leases and prints the
// report of the calls until then.
func TestReplayServerInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url, limiter := startAnd(t, cancel)
	// Each call lasts a minute, so none ends by itself before the interrupt.
	args := []string{
		"replay", liveTrace(t, 10_000), "--server", url, "--speed", "100", "--latency", "59m",
		"--entities", "2", "-o", "json",
	}
	began := time.Now()
	ran := runIn(ctx, noEnv, args...)
	if ran.code != console.ExitFailed || ran.err != "weir: interrupted\n" {
		t.Errorf("got exit code %d and %q, want 1 and an interruption", ran.code, ran.err)
	}
	r := replayReported(t, ran.out)
	if r.Live.Stopped != "interrupted" || r.Live.Sent < 10 || r.Live.Sent > 9000 ||
		r.Totals.Calls != r.Live.Sent || r.Live.Unsettled != 0 || r.Calls != 10_000 {
		t.Errorf("got %+v and %+v, want a part of the calls, all of them settled", r.Live, r.Totals)
	}
	if free := liveserver.SlotsFree(t, limiter); r.Totals.Admitted < 10 || !free {
		t.Errorf("got %d admitted and slots free %v, want at least 10 and true", r.Totals.Admitted, free)
	}
	t.Logf("%d sent, %d admitted, all settled after %v",
		r.Live.Sent, r.Totals.Admitted, time.Since(began))
}

func noEnv(string) string { return "" }

// TestReplayServerGone checks that the errors of a server that goes away are counted as such and
// never as denials, and that the replay ends after a hundred of them.
func TestReplayServerGone(t *testing.T) {
	t.Parallel()
	var reserved atomic.Int64
	url, _ := liveserver.Start(t, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/reserve" && reserved.Add(1) > 20 {
				panic(http.ErrAbortHandler) // the connection breaks
			}
			h.ServeHTTP(w, r)
		})
	})
	r := runWeir(t, "replay", liveTrace(t, 5000), "--server", url, "--speed", "2000",
		"--entities", "2", "-o", "json")
	want := "weir: gave up after 100 errors in a row, the last one: reserve: unavailable"
	if r.code != console.ExitFailed || !strings.HasPrefix(r.err, want) {
		t.Errorf("got exit code %d and %q, want that it gave up", r.code, r.err)
	}
	report := replayReported(t, r.out)
	if c := report.Totals; c.Admitted != 20 || c.Denied != 0 || c.Errors < maxInARow ||
		report.Live.Errors["unavailable"] != c.Errors ||
		!strings.HasPrefix(report.Live.Stopped, "gave up") {
		t.Errorf("got %+v and %+v, want 20 admitted, none denied, the others unavailable", c, report.Live)
	}

	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	r = runWeir(t, "replay", liveTrace(t, 1), "--server", s.URL)
	if r.code != console.ExitFailed || !strings.HasPrefix(r.err, "weir: unavailable") || r.out != "" {
		t.Errorf("got exit code %d, %q and %q, want a server that is unavailable", r.code, r.err, r.out)
	}
}

// TestReplayServerToken checks that a bearer token is read from the environment or a file, and that
// a replay without one ends with the server's refusal before its first call.
func TestReplayServerToken(t *testing.T) {
	t.Parallel()
	testToken(t, false, "replay", liveTrace(t, 2), "--speed", "1000")
}

// TestReplayServerMisuse checks that a workload that does not fit the server's limits is misuse,
// as with a file.
func TestReplayServerMisuse(t *testing.T) {
	t.Parallel()
	url, _ := liveserver.Start(t, nil, nil)
	trace := liveTrace(t, 2)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{
			[]string{"--resource", "image"}, console.ExitMisused,
			"weir: no limits apply to tenant-1 on the resource image; ",
		},
		{
			[]string{"--cost", "usd=1"}, console.ExitMisused,
			"weir: --cost usd: no entity in the replay has such a limit on llm",
		},
		{[]string{"--cost", "rpm=200"}, console.ExitDone, ""}, // never satisfiable: each call's own error
	} {
		args := append([]string{"replay", trace, "--server", url, "--speed", "1000"}, c.args...)
		r := runWeir(t, args...)
		if r.code != c.code || !strings.HasPrefix(r.err, c.want) || c.want == "" && r.err != "" {
			t.Errorf("%q: got exit code %d and %q, want %d and %q", c.args, r.code, r.err, c.code, c.want)
		}
		const foot = "errors are not denials: 2 never satisfiable\n"
		if c.code == console.ExitDone && !strings.Contains(r.out, foot) {
			t.Errorf("%q: got\n%s\nwant two calls that are never satisfiable", c.args, r.out)
		}
	}
	r := runWeir(t, "replay", trace, "--server", "ftp://somewhere")
	want := `server "ftp://somewhere": must begin with http`
	if r.code != console.ExitMisused || !strings.Contains(r.err, want) {
		t.Errorf("got exit code %d and %q, want misuse", r.code, r.err)
	}
}
