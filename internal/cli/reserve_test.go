package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/connect"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/internal/testkit/liveserver"
)

// runFull runs the program with an output that cannot be written.
func runFull(t *testing.T, args ...string) result {
	t.Helper()
	var errs bytes.Buffer
	full, out := io.Pipe()
	full.CloseWithError(errors.New("no space left"))
	code := Run(t.Context(), args, console.Streams{In: strings.NewReader(""), Out: out, Err: &errs}, noEnv)
	return result{code, "", errs.String()}
}

// TestReserveAnswerIsNotWritten checks that the error names the lease if the answer cannot be
// written.
func TestReserveAnswerIsNotWritten(t *testing.T) {
	t.Parallel()
	url, limiter := liveserver.Start(t, nil, nil)
	for _, flag := range []string{"--quiet", "--output=json"} {
		r := runFull(t, "reserve", "tenant-1", "llm", "rpm=1", "--server", url, flag)
		id := regexp.MustCompile(`no space left: the lease ([0-9A-Z]{26}) was made: `).FindStringSubmatch(r.err)
		if r.code != console.ExitFailed || id == nil {
			t.Fatalf("%s: got exit code %d and %q, want 1 and the lease", flag, r.code, r.err)
		}
		if done := runWeir(t, "cancel", id[1], "--server", url); done.code != console.ExitDone {
			t.Errorf("%s: got %q, want a lease to cancel", flag, done.err)
		}
	}
	if !liveserver.SlotsFree(t, limiter) {
		t.Error("got slots that are occupied, want all given back")
	}
	for _, args := range [][]string{{"--help"}, {"completion", "bash"}, {"help", "serve"}} {
		want := "weir: output: no space left\n"
		if r := runFull(t, args...); r.code != console.ExitFailed || r.err != want {
			t.Errorf("%q: got exit code %d and %q, want 1 and %q", args, r.code, r.err, want)
		}
	}
}

// TestWaitOnServer checks that no further request is sent when the time to wait is over, and that
// the one in flight still gets its answer.
func TestWaitOnServer(t *testing.T) {
	t.Parallel()
	const wait = 300 * time.Millisecond
	var sent atomic.Int64
	begun, answer := make(chan struct{}, 10), make(chan struct{})
	url, limiter := liveserver.Start(t, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			begun <- struct{}{}
			<-answer
			h.ServeHTTP(w, r)
		})
	})
	done := make(chan result, 1)
	go func() {
		done <- runWeir(t, "reserve", "tenant-1", "llm", "rpm=1", "--wait", wait.String(), "--server", url)
	}()
	<-begun
	over := time.NewTimer(2 * wait)
	<-over.C
	close(answer)
	if r := <-done; r.code != console.ExitDone || sent.Load() != 1 || liveserver.SlotsFree(t, limiter) {
		t.Errorf("got exit code %d, %q and %d requests, want the lease after one", r.code, r.err, sent.Load())
	}

	sent.Store(0)
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/reserve" { // not the cancel of a lease that may have been reserved
			sent.Add(1)
		}
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests) // a proxy's
	}))
	defer failing.Close()
	r := runWeir(t, "reserve", "tenant-1", "llm", "rpm=1", "--wait", wait.String(), "--server", failing.URL)
	if r.code != console.ExitFailed || sent.Load() != 1 ||
		!regexp.MustCompile(`unavailable: lease_id "[0-9A-Z]{26}": `).MatchString(r.err) {
		t.Errorf("got exit code %d, %q and %d requests, want 1, the lease ID and one", r.code, r.err, sent.Load())
	}
}

// TestServerIsUnreachable checks that the error has the known reason.
func TestServerIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		answer     func(http.ResponseWriter)
	}{
		{"a redirect", `(it redirects to "http://a.example/x?y": name the server itself with --server)`,
			func(w http.ResponseWriter) {
				w.Header().Set("Location", "http://a.example/x?y")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}},
		{"a busy server", "the server answered 503 Service Unavailable: so busy", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":503,"code":"unavailable","detail":"so busy"}`)
		}},
		{"TLS", "(if the server uses TLS, its address begins with https://)", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
		}},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
		r := runWeir(t, "status", "acme", "--server", s.URL)
		if r.code != console.ExitFailed || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: got exit code %d and %q, want 1 and %s", c.name, r.code, r.err, c.want)
		}
		r = runWeir(t, "status", "acme", "--server", strings.Replace(s.URL, "http:", "https:", 1))
		if want := "(the server does not use TLS: its address begins with http://)"; !strings.Contains(r.err, want) {
			t.Errorf("%s: got %q, want %s", c.name, r.err, want)
		}
		s.Close()
	}
}

// TestBearerTokenWithoutTLS checks that a bearer token that others on the network could read causes
// a warning.
func TestBearerTokenWithoutTLS(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{
		"http://127.0.0.1:7117": true, "http://[::1]:7117/x": true, "http://LOCALHOST": true,
		"https://weir.example": true, "HTTPS://10.0.0.1": true,
		"http://10.0.0.1:7117": false, "http://weir.example": false, "http://127.0.0.1.example": false,
	} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Run(ctx, []string{"status", "a", "--server", server}, console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
			func(name string) string { return map[string]string{connect.TokenEnv: "a-bearer-token\n"}[name] })
		warned := strings.HasPrefix(errs.String(), "weir: note: the bearer token is sent unencrypted")
		if warned == want {
			t.Errorf("%s: got %q, want a warning only where it is not confidential", server, errs.String())
		}
	}
}

// TestSettleInterrupted checks that the error of an interrupted settlement says that its outcome is
// unknown.
func TestSettleInterrupted(t *testing.T) {
	t.Parallel()
	const id = "01JD5W3T7M2Q8R4XKB6NCV9ZHE"
	for _, args := range [][]string{
		{"complete", id}, {"cancel", id}, {"extend", id}, {"adjust", id, "rpm=1", "--seq", "1"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that net/http notices when the client leaves
			interrupt()
			<-r.Context().Done()
		}))
		var out, errs bytes.Buffer
		code := Run(ctx, append(args, "--server", s.URL), console.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, noEnv)
		want := fmt.Sprintf("weir: interrupted: lease %s: the outcome is unknown: "+
			"the same command may be repeated\n", id)
		if code != console.ExitFailed || errs.String() != want {
			t.Errorf("%s: got exit code %d and %q, want 1 and %q", args[0], code, errs.String(), want)
		}
		s.Close()
	}
}

// degrading answers every reservation with a degraded lease.
type degrading struct{ weir.Service }

func (degrading) Reserve(_ context.Context, _ *weir.Request) (*weir.Lease, error) {
	return &weir.Lease{ID: weir.NewLeaseID(time.UnixMilli(1)), Degraded: true}, nil
}

// TestQuietDegraded checks that the note that nothing was charged is printed even with --quiet.
func TestQuietDegraded(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		cmd := reserveCommand((&console.App{Env: noEnv}))
		ask, err := (&reserveFlags{quiet: quiet}).plan(cmd, []string{"acme", "gpt-4o"})
		if err != nil {
			t.Fatal(err)
		}
		c := &connect.Connection{Service: degrading{}}
		found, err := ask(t.Context(), c)
		if err != nil || !found.LeaseID.IsZero() || (len(c.Notes) == 1) != quiet {
			t.Errorf("quiet %v: got %v, %+v and notes %q", quiet, err, found, c.Notes)
		}
	}
}

// TestSettleInDoubt checks that the table and the JSON say that a refund is in doubt.
func TestSettleInDoubt(t *testing.T) {
	t.Parallel()
	r := &weir.Receipt{LeaseID: weir.NewLeaseID(time.UnixMilli(1)), At: time.UnixMilli(1)}
	for _, doubt := range []bool{false, true} {
		r.RefundInDoubt = doubt
		found := receiptAnswer(r)
		var b bytes.Buffer
		found.Table(&b)
		text, err := json.Marshal(found.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), inDoubtNote) != doubt ||
			strings.Contains(string(text), `"refund_in_doubt":true`) != doubt {
			t.Errorf("in doubt %t: got\n%s\nand %s", doubt, b.String(), text)
		}
	}
}
