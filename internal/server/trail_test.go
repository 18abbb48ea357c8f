package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/httpapi/httphandler"
	"github.com/weir-limiter/weir/memory"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, word, words string }{
		{"", "", ""},
		{"acme/team:a.b-c_d@e", "acme/team:a.b-c_d@e", "acme/team:a.b-c_d@e"},
		{"a b=c", `a\x20b\x3dc`, `a b\x3dc`},
		{`a"b\c`, `a\x22b\x5cc`, `a'b\x5cc`},
		{"a\nb\x1b[2J", `a\x0ab\x1b[2J`, `a\x0ab\x1b[2J`},
		{"\u202e\u05d0\u009b", `\u202e\u05d0\u009b`, `\u202e\u05d0\u009b`},
		{"\xff\U0001f600", `\xff\U0001f600`, `\xff\U0001f600`},
		{strings.Repeat("x", 41), strings.Repeat("x", 40) + "...(41_bytes)", strings.Repeat("x", 40) + "...(41_bytes)"},
	} {
		if got := shown(c.text, 40); got != c.word {
			t.Errorf("shown(%q): got %s, want %s", c.text, got, c.word)
		}
		if got := shownText(c.text, 40); got != c.words {
			t.Errorf("shownText(%q): got %s, want %s", c.text, got, c.words)
		}
	}
}

// TestShownList checks that no name in a list looks like two, and that long lists say what they lack.
func TestShownList(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 180)
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"rpm", "acme#llm#tpm"}, "rpm,acme#llm#tpm"},
		{[]string{"rpm,a#llm#tpm", "a=b"}, `rpm\x2ca#llm#tpm,a\x3db`},
		{[]string{long, long, long, long}, long + "," + long + ",...(2_more)"},
		{[]string{strings.Repeat(",", 192), "b"}, strings.Repeat(`\x2c`, 192) + ",...(1_more)"},
	} {
		if got := shownList(c.names); got != c.want {
			t.Errorf("%q: got %s, want %s", c.names, got, c.want)
		}
	}
}

// FuzzShown checks that no text can leave its field, in neither form.
func FuzzShown(f *testing.F) {
	for _, name := range hostileNames[:8] {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for form, got := range map[string]string{
			"[^!-~]|[\"=]": shown(text, 100), "[^ -~]|[\"=]": shownText(text, 100),
		} {
			if bad := regexp.MustCompile(form).FindString(got); bad != "" || len(got) > 140 {
				t.Errorf("%q: %q in %q of %d bytes", text, bad, got, len(got))
			}
		}
	})
}

// TestRefusalsAreBounded checks the numbers of lines and of keys that are counted, and that each
// refusal is either in a line or in a number.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	c := &refusalCount{kind: httphandler.RefusedToken, ofOne: 2, ofAll: 10}
	for range 2 { // the second time after a flush
		passed := 0
		for i := range 3 * mostCounted {
			for range 3 {
				if c.allow(fmt.Sprint("a", i), false) {
					passed++
				}
			}
		}
		if passed != 10 || len(c.by) != mostCounted {
			t.Errorf("%d passed and %d are counted, want 10 and %d", passed, len(c.by), mostCounted)
		}
		c.flush(t.Context(), newTestLogger(log))
	}
	said := log.String()
	if n := strings.Count(said, "\n"); n != 2*(mostNamed+1) {
		t.Errorf("%d lines, want %d: %s", n, 2*(mostNamed+1), said)
	}
	// All but the 10 that were logged, and the 3 of each of the first mostNamed.
	want := fmt.Sprintf("from=others others=%d more=true left_out=%d",
		mostCounted-mostNamed, 9*mostCounted-10-3*mostNamed)
	if strings.Count(said, want) != 2 {
		t.Errorf("want twice %s: %s", want, said)
	}
	log.text.Reset()
	c.flush(t.Context(), newTestLogger(log))
	if log.String() != "" {
		t.Errorf("got %s, want nothing", log)
	}
}

// TestHostileNamesAtDebug checks that a request is one line at debug level, whatever it names.
func TestHostileNamesAtDebug(t *testing.T) {
	t.Parallel()
	for name, inJSON := range map[string]bool{"text": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHour(t, inJSON, slog.LevelDebug)
				h.run(func(minute int) {
					if minute == 30 {
						h.attack(minute)
					}
				})
				lines := h.checkLines(inJSON)
				h.checkSecrets()
				checkRows(t, lines)
				h.wantLines(lines, 200+1200+50+10+3*len(hostileNames)+1+30, "msg=request")
				h.wantLines(lines, 50, "msg=request", "caller=checkout", "from=192.0.2.7", "status=403")
			})
		})
	}
}

// TestRequestFields checks what a line about a request has at debug level.
func TestRequestFields(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	w := start(t, &Options{
		LimitsFile: write(t, t.TempDir(), "limits.yaml", `version: 1
resources:
  llm: {limits: {rpm: {capacity: 1}, tpm: {capacity: 50}}}
entities:
  acme: {resources: {llm: {limits: {tpm: {capacity: 40}}}}}
  bot: {parent: acme, cascade: true}
  child: {parent: acme, cascade: true, resources: {llm: {limits: {rpm: {capacity: 1}}}}}
`),
		TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens()), Logger: newTestLogger(log),
	})
	const body = `{"entity":"bot","resource":"llm","costs":{"rpm":1,"tpm":30}}`
	id := w.ask(t, "/v1/reserve", body, callToken).lease(t).LeaseID
	w.ask(t, "/v1/reserve", body, callToken)
	w.ask(t, "/v1/complete", `{"lease_id":"`+id.String()+`"}`, callToken)
	const charge = `{"entity":"%s","resource":"llm","costs":{"tpm":%d}}`
	w.ask(t, "/v1/reserve", `{"charges":[`+fmt.Sprintf(charge, "tenant,rpm", 1)+","+
		fmt.Sprintf(charge, "bot", 40)+`]}`, callToken)
	w.ask(t, "/v1/reserve", `{"charges":[`+fmt.Sprintf(charge, "ant", 40)+","+
		fmt.Sprintf(charge, "bot", 20)+`]}`, callToken)
	w.ask(t, "/v1/reserve", fmt.Sprintf(charge, "child", 30), callToken)
	w.ask(t, "/v1/status?entity=bot&resource=llm", "", readToken)
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"route=/v1/reserve status=200 took=T caller=checkout from=127.0.0.1 path=/v1/reserve " +
			"lease_id=" + id.String() + " entity=bot resource=llm charged=rpm,tpm,acme#llm#tpm\n",
		"status=429 took=T caller=checkout from=127.0.0.1 path=/v1/reserve lease_id=ID " +
			"entity=bot resource=llm denied=rpm,tpm,acme#llm#tpm\n",
		`path=/v1/reserve lease_id=ID entity=tenant,rpm resource=llm charges=tenant\x2crpm#llm,bot#llm ` +
			"denied=bot#llm#tpm,acme#llm#tpm\n",
		"path=/v1/reserve lease_id=ID entity=child resource=llm denied=acme#llm#tpm\n",
		"route=/v1/complete status=200 took=T caller=checkout from=127.0.0.1 path=/v1/complete " +
			"lease_id=" + id.String() + "\n",
		"route=/v1/status status=200 took=T caller=grafana from=127.0.0.1 path=/v1/status " +
			"entity=bot resource=llm\n",
	} {
		said := regexp.MustCompile(`took=\S+`).ReplaceAllString(log.String(), "took=T")
		if !strings.Contains(want, id.String()) {
			said = regexp.MustCompile(`lease_id=\w{26}`).ReplaceAllString(said, "lease_id=ID")
		}
		if !strings.Contains(said, want) {
			t.Errorf("want %q in %s", want, said)
		}
	}
}

// TestNoDebugCostsNothing checks that a request that is not logged allocates nothing for the log.
func TestNoDebugCostsNothing(t *testing.T) { //nolint:paralleltest // It counts allocations.
	w := start(t, &Options{Logger: slog.New(slog.NewTextHandler(&logBuffer{}, nil))})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/reserve", http.NoBody)
	served := servedRequest{method: "POST", route: "/v1/reserve", status: 200, request: r}
	if n := testing.AllocsPerRun(1000, func() {
		same, details := w.server.wantDetails(r)
		if same != r || details != nil {
			t.Error("details are wanted")
		}
		w.server.logRequest(t.Context(), &served)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// brokenConfig is a store whose configuration cannot be changed for now.
type brokenConfig struct{ *memory.Store }

func (brokenConfig) ChangeLimits(
	context.Context, time.Time, weir.Subject, []weir.Limit, change.Options,
) (string, error) {
	return "", errors.New("no route to the store")
}

// TestFailedChangeIsOneLine checks that a change that the store did not make is one line, with the
// cause.
func TestFailedChangeIsOneLine(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := startOver(t, brokenConfig{store}, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.url+"/v1/admin/system/limits",
		strings.NewReader(`{"limits":{"rpm":{"capacity":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(got.Body)
	said := w.log.String()
	const want = `level=ERROR msg=change action=limits_set caller=- from=127.0.0.1 place=system ` +
		`result=failed before="rpm 1000000 per 60s" status=503 reason="`
	if got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(said, want) ||
		strings.Count(said, "no route to the store") != 1 {
		t.Errorf("got %d, and want once %q in %s", got.StatusCode, want, said)
	}
}

// TestLastRefusals checks that the number of refusals that were left out while the server shut down
// is in the log before its last line.
func TestLastRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHour(t, false, slog.LevelInfo)
		ended := make(chan error, 1)
		go func() { ended <- h.s.shutDown(t.Context()) }()
		time.Sleep(100 * time.Millisecond) // less than Bounds.ShutdownDelay
		for range refusalsOfOne + 3 {
			h.send("GET", "/v1/status", "192.0.2.1:1", "nobody-0123456789", "")
		}
		if err := errors.Join(<-ended, h.s.listener.Close(), h.s.limiter.Close()); err != nil {
			t.Error(err)
		}
		said := h.log.String()
		_, after, ok := strings.Cut(said, `msg="refusals left out" kind=token from=192.0.2.1 left_out=3`)
		if !ok || !strings.Contains(after, `msg="shut down"`) {
			t.Errorf("the log has no number of refusals before its last line: %s", said)
		}
	})
}

// TestOneLine checks that several mistakes of a change are a line.
func TestOneLine(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("weir: set limits: %w", errors.Join(
		weir.NewError(weir.Invalid, "limits.a", "x\ny", "is wrong"),
		weir.NewError(weir.Invalid, "limits.b", 0, "is wrong, too")))
	const want = `set limits: invalid: limits.a "x\ny": is wrong; invalid: limits.b "0": is wrong, too`
	if got := oneLine(err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAddresses checks what a refusal says of the address, without bearer tokens and behind a proxy.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remote string
		header []string // X-Forwarded-For
		want   string
	}{
		{"192.0.2.1:80", nil, "caller=- from=192.0.2.1 method"},
		{"[::ffff:192.0.2.1]:80", nil, "caller=- from=192.0.2.1 method"},
		{"[2001:db8::1%eth0]:80", nil, "caller=- from=2001:db8::1 method"},
		{"@", nil, "caller=- from=- method"},
		{
			"192.0.2.1:80", []string{"203.0.113.9", "198.51.100.2, 198.51.100.3"},
			"caller=- from=192.0.2.1 forwarded_for=198.51.100.3 method",
		},
		{"192.0.2.1:80", []string{"1.2.3.4 caller=ops"}, "caller=- from=192.0.2.1 method"},
	} {
		log := &logBuffer{}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		r.RemoteAddr = c.remote
		for _, value := range c.header {
			r.Header.Add("X-Forwarded-For", value)
		}
		newTrail(newTestLogger(log)).Refused(t.Context(), &httphandler.Refusal{
			Kind: httphandler.RefusedToken, Request: r, Status: http.StatusUnauthorized, Reason: "no",
		})
		if !strings.Contains(log.String(), "msg=refused kind=token "+c.want) {
			t.Errorf("%s %q: got %s, want %s", c.remote, c.header, log, c.want)
		}
	}
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8:1:2:3::1]:1": "2001:db8:1:2::/64", "": none,
	} {
		who := askerOf(&http.Request{RemoteAddr: remote}, &httphandler.Identity{})
		if got := who.key(); got != want {
			t.Errorf("%s: the key is %s, want %s", remote, got, want)
		}
	}
}

// TestPathWithToken checks that a path with the bearer token is hidden, but not by a short one.
func TestPathWithToken(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Bearer secret-012": hidden, "secret-012": hidden, "bearer  secret-0": hidden,
		"Bearer /": "/v1/secret-012%2F1", "Bearer": "/v1/secret-012%2F1", "": "/v1/secret-012%2F1",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/secret-012%2F1?q=secret-012",
			http.NoBody)
		r.Header.Set("Authorization", given)
		if got := safePath(r); got != want {
			t.Errorf("%q: got %s, want %s", given, got, want)
		}
	}
}

// TestForeignHostIsLogged checks that a request for another host is a line.
func TestForeignHostIsLogged(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/status", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	got, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(got.Body)
	const want = "level=INFO msg=refused kind=host caller=- from=127.0.0.1 method=GET route=other " +
		"path=/v1/status status=421"
	if !strings.Contains(w.log.String(), want) {
		t.Errorf("want %q in %s", want, w.log)
	}
}
