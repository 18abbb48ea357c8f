package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// TestLogs checks that requests and denials are logged only at debug level, failures and refused
// callers always, and secrets never.
func TestLogs(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]map[string]bool{
		slog.LevelDebug: {"msg=request": true, "msg=denied": true, "acme-corporation": true, "kind=token": true},
		slog.LevelInfo:  {"msg=request": false, "msg=denied": false, "acme-corporation": false, "kind=token": true},
	} {
		dir := t.TempDir()
		log := &logBuffer{}
		w := start(t, &Options{
			LimitsFile: write(t, dir, "limits.yaml", limitsOf(1)),
			TokensFile: write(t, dir, "tokens.yaml", threeTokens()),
			Logger:     slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})),
		})
		const body = `{"entity":"acme-corporation","resource":"llm","costs":{"rpm":1}}`
		for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			if got := w.ask(t, "/v1/reserve", body, callToken); got.status != want {
				t.Errorf("got %d %s, want %d", got.status, got.body, want)
			}
		}
		w.ask(t, "/v1/reserve", body, "nobody-0123456789")
		w.ask(t, "/no/path/acme-corporation", "", "")
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		said := log.String()
		for text, is := range want {
			if strings.Contains(said, text) != is {
				t.Errorf("%v: the log has %q is %t, want %t: %s", level, text, !is, is, said)
			}
		}
		for _, secret := range []string{callToken, adminToken, readToken, "nobody-0123456789"} {
			if strings.Contains(said, secret) {
				t.Errorf("%v: the log has a bearer token: %s", level, said)
			}
		}
		if !strings.Contains(said, "msg=listening url=http://127.0.0.1:") || !strings.Contains(said, `msg="shut down"`) {
			t.Errorf("%v: the log does not say when the server began and ended: %s", level, said)
		}
	}
}

// TestDenialFields checks that a denial is logged with who asked, and with the limits that denied:
// those of the first charge by name, and those of others, such as its parent, by full name.
func TestDenialFields(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	w := start(t, &Options{
		LimitsFile: write(t, t.TempDir(), "limits.yaml", `version: 1
resources:
  llm: {limits: {rpm: {capacity: 1}, tpm: {capacity: 50}, seen: {capacity: 1, enforce: false}}}
entities:
  acme: {resources: {llm: {limits: {tpm: {capacity: 40}}}}}
  bot: {parent: acme, cascade: true}
  "its,limits=acme's": {parent: acme, cascade: true, resources: {llm: {limits: {other: {capacity: 1}}}}}
`),
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	const bot = `{"entity":"bot","resource":"llm","costs":`
	const hostile = `{"entity":"its,limits=acme's","resource":"llm","costs":`
	for _, c := range []struct {
		body   string
		status int
	}{
		{bot + `{"rpm":1,"tpm":30,"seen":1}}`, http.StatusOK},
		{bot + `{"rpm":1,"tpm":30,"seen":1}}`, http.StatusTooManyRequests},
		{bot + `{"tpm":15}}`, http.StatusTooManyRequests},
		{bot + `{"tpm":51}}`, http.StatusUnprocessableEntity},
		{hostile + `{"tpm":15}}`, http.StatusTooManyRequests},
		{`{"charges":[` + hostile + `{"other":1}},` + bot + `{"tpm":15}}]}`, http.StatusTooManyRequests},
	} {
		if got := w.ask(t, "/v1/reserve", c.body, ""); got.status != c.status {
			t.Errorf("%s: got %d %s, want %d", c.body, got.status, got.body, c.status)
		}
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		if _, fields, ok := strings.Cut(line, "msg=denied "); ok {
			got = append(got, regexp.MustCompile(`retry_after=[0-9m.]+s |lease_id=\w{26}`).ReplaceAllString(fields, "…"))
		}
	}
	want := []string{
		"entity=bot resource=llm limits=rpm,tpm,acme#llm#tpm …contended=false …\n",
		"entity=bot resource=llm limits=acme#llm#tpm …contended=false …\n",
		`entity=its,limits\x3dacme's resource=llm limits=acme#llm#tpm …contended=false …` + "\n",
		`entity=its,limits\x3dacme's resource=llm charges=its\x2climits\x3dacme's#llm,bot#llm ` +
			"limits=acme#llm#tpm …contended=false …\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFailuresAreLogged checks that an answer with status 5xx is logged above debug level.
func TestFailuresAreLogged(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	w := startOver(t, brokenStore{store}, &Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusServiceUnavailable ||
		strings.Contains(string(got.body), "no route") {
		t.Errorf("got %d %s, want 503 without the cause", got.status, got.body)
	}
	if said := log.String(); !strings.Contains(said, "level=WARN msg=request method=POST route=/v1/reserve status=503") ||
		!strings.Contains(said, "no route to the store") {
		t.Errorf("the log does not say what failed: %s", said)
	}
	if got := w.figures(t, "")[`weir_decisions_total{outcome="unavailable",verb="reserve"}`]; got != 1 {
		t.Errorf("got %v unavailable, want 1", got)
	}
}

// supersededStore is a store in which other limits are in force.
type supersededStore struct{ *memory.Store }

func (supersededStore) Reserve(context.Context, time.Time, *driver.Plan, *driver.Outcome) error {
	return &weir.Error{Code: weir.Superseded, Reason: "version 2 is in force"}
}

// TestSupersededIsLogged checks that a server whose limits are not in force logs that and why, once
// for many requests, and without their entities.
func TestSupersededIsLogged(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	w := startOver(t, supersededStore{store}, &Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	for range 3 {
		if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusServiceUnavailable {
			t.Errorf("got %d %s, want 503", got.status, got.body)
		}
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	said := log.String()
	const line = `level=WARN msg="superseded: reservations are refused" error=`
	if strings.Count(said, line) != 1 || strings.Count(said, "version 2 is in force") != 1 {
		t.Errorf("got log %s, want one line with the reason", said)
	}
	if strings.Contains(said, "acme") {
		t.Errorf("the log has an entity: %s", said)
	}
}

// TestHTTPErrors checks that net/http's lines about clients are at debug level, and those about the
// server above it.
func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	out := httpErrorWriter{newTestLogger(log)}
	for line, level := range map[string]string{
		"http: TLS handshake error from 192.0.2.1:1: EOF":   "DEBUG",
		"http: panic serving 192.0.2.1:1: oh\ngoroutine 1":  "ERROR",
		"http: Accept error: too many open files; retrying": "WARN",
	} {
		if _, err := io.WriteString(out, line); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(line, "\n")
		if said := log.String(); !strings.Contains(said, "level="+level+` msg="http server" said="`+first) {
			t.Errorf("%q: got %s, want level %s", line, said, level)
		}
	}
}

// TestLogsOfFailuresAreBounded checks that the log has one or two lines, and a metric the number,
// however many requests fail and however many clients hang up.
func TestLogsOfFailuresAreBounded(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	slow := &stuckStore{Store: store}
	w := startOver(t, slow, &Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	eventually(t, "20 clients hang up", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/reserve",
			strings.NewReader(askRPM))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
		return w.figures(t, "")["weir_requests_left_total"] >= 20
	})
	if said := log.String(); strings.Contains(said, "level=WARN msg=request") ||
		strings.Contains(said, "the service failed") {
		t.Errorf("clients that hang up are in the log: %s", said)
	}
	slow.fails.Store(true)
	for range 20 {
		if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusServiceUnavailable {
			t.Errorf("got %d, want 503", got.status)
		}
	}
	for _, line := range []string{"level=WARN msg=request", `level=WARN msg="the service failed"`} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%d lines %q, want 1: %s", n, line, log)
		}
	}
}

// TestThrottle checks that a line that is logged again after a minute says how many were left out.
func TestThrottle(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	h := throttled(slog.New(slog.NewTextHandler(log, nil))).Handler()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 122 {
		r := slog.NewRecord(at.Add(time.Duration(i)*time.Second), slog.LevelWarn, "failed", 0)
		if err := h.Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if said := log.String(); strings.Count(said, "\n") != 3 || strings.Count(said, "left_out=59") != 2 {
		t.Errorf("got %s, want three lines, two of which say that 59 were left out", said)
	}
}

// TestStoreFaults checks that each failure is counted, and that the first is logged at once and
// further ones once a minute, with their number.
func TestStoreFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		f := NewStoreFaults(newTestLogger(log))
		if f.count() != 0 || f.last() != 0 {
			t.Errorf("before: got %v at %v, want none", f.count(), f.last())
		}
		for range 150 { // one a second
			f.Note(errors.New("weir: the disk is full"))
			time.Sleep(time.Second)
		}
		want := []string{"times=1 total=1", "times=60 total=61", "times=60 total=121"}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != len(want) {
			t.Fatalf("got %d lines, want %d: %s", len(lines), len(want), log)
		}
		for i, line := range lines {
			if !strings.Contains(line, want[i]) || !strings.Contains(line, `level=ERROR msg="the store failed" error="the disk is full"`) {
				t.Errorf("got %s, want %s", line, want[i])
			}
		}
		at := float64(time.Now().Add(-time.Second).UnixMilli()) / 1000
		if f.count() != 150 || f.last() != at {
			t.Errorf("got %v at %v, want 150 at %v", f.count(), f.last(), at)
		}
	})
	var none *StoreFaults
	if none.count() != 0 || none.last() != 0 {
		t.Error("none has some")
	}
	NewStoreFaults(nil).Note(errors.New("to nobody"))
}

// TestSnapshotFails checks that the log and the metrics of a running server report a snapshot that
// could not be written, and only such a snapshot.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	faults := NewStoreFaults(newTestLogger(log))
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "snapshot")
	store, err := memory.OpenSnapshot(file, &memory.SnapshotOptions{
		Every: 10 * time.Millisecond, OnError: faults.Note,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := startOver(t, store, &Options{StoreFaults: faults})
	w.ask(t, "/v1/reserve", askRPM, "")
	eventually(t, "a snapshot", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	const total, last = "weir_store_errors_total", "weir_store_last_error_timestamp_seconds"
	const complete, failures = "weir_snapshot_last_success_timestamp_seconds", "weir_snapshot_failures_total"
	before := w.figures(t, "")
	if before[total] != 0 || before[last] != 0 || before[failures] != 0 || log.String() != "" {
		t.Errorf("before: got %v, %v, %v and %s, want no failure",
			before[total], before[last], before[failures], log)
	}
	if got := before["weir_snapshot_interval_seconds"]; got != 0.01 {
		t.Errorf("got %v seconds between snapshots, want 0.01", got)
	}
	// Nothing changes, so no snapshot is needed, and the file has everything.
	eventually(t, "a look at the state", func() bool { return w.figures(t, "")[complete] > before[complete] })
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "/v1/reserve", askRPM, "")
	eventually(t, "it is counted", func() bool { return w.figures(t, "")[total] > 1 })
	if said := log.String(); strings.Count(said, "the store failed") != 1 || !strings.Contains(said, "write snapshot") {
		t.Errorf("want one line: %s", said)
	}
	after := w.figures(t, "")
	if after[last] == 0 || after[failures] == 0 {
		t.Errorf("the metrics say that %v failed, the last one at %v", after[failures], after[last])
	}
	// The last success was before the call that no snapshot has.
	if later := w.figures(t, ""); later[complete] != after[complete] || later[complete] >= later[last] {
		t.Errorf("got success at %v, then at %v, and a failure at %v",
			after[complete], later[complete], later[last])
	}
	if err := os.Rename(dir+".gone", dir); err != nil { // or closing fails
		t.Fatal(err)
	}
}
