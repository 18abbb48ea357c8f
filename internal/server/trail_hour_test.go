package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// The most lines in a minute, besides those of changes that were made, and the most bytes of a line.
const (
	mostLinesAMinute = 6*(refusalsOfAll+mostNamed+1) + changesOfAll + mostNamed + 1
	mostBytesALine   = 2048
)

// hostileNames try to forge lines and fields. None of them is a name that weir accepts.
var hostileNames = []string{
	"a\ntime=2000-01-01T00:00:00.000Z level=INFO msg=change caller=ops action=entity_deleted",
	"a\r\n{\"msg\":\"change\",\"caller\":\"ops\"}",
	`a" caller=ops result="done`,
	`a","caller":"ops", "result":"done`,
	"a caller=ops action=entity_deleted",
	"\x1b[2J\x1b]0;owned\x07\u009b31m",
	"\u202eabc\u2066\u05d0\u05d1",
	"a\x00\xff\xfe\u2028\u2029\x7f",
	strings.Repeat("A", 64<<10),
	strings.Repeat("\u05d0\n", 16<<10),
}

// hourOf is a server in a virtual hour, without a network.
type hourOf struct {
	t       *testing.T
	s       *Server
	handler http.Handler
	log     *logBuffer
	dir     string
	secrets []string
}

// newHour makes the server in a bubble of synctest.
func newHour(t *testing.T, json bool, level slog.Level) *hourOf {
	t.Helper()
	h := &hourOf{t: t, log: &logBuffer{}, dir: t.TempDir()}
	options := &slog.HandlerOptions{Level: level}
	logger := slog.New(slog.NewTextHandler(h.log, options))
	if json {
		logger = slog.New(slog.NewJSONHandler(h.log, options))
	}
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	h.s, err = New(t.Context(), store, &Options{
		LimitsFile: write(t, h.dir, "limits.yaml", plenty), Store: "memory:", Version: "v1.2.3",
		TokensFile: write(t, h.dir, "tokens.yaml", threeTokens()), Logger: logger,
		Bounds: Bounds{MaxBody: 256 << 10}, Limiter: &limiter.Options{MaxLeases: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.handler, _ = h.s.handlers()
	h.s.http = h.s.newHTTP(t.Context(), h.s.listener, h.handler)
	h.secrets = []string{adminToken, callToken, readToken}
	return h
}

// run serves for an hour; each is called once in each minute.
func (h *hourOf) run(each func(minute int)) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan struct{}, 2)
	go func() { h.s.watch(ctx); ended <- struct{}{} }()
	go func() { h.s.trail.run(ctx); ended <- struct{}{} }()
	h.s.announce(ctx)
	time.Sleep(10 * time.Second) // not when lines are flushed
	for minute := range 60 {
		each(minute)
		time.Sleep(time.Minute)
	}
	err := h.s.shutDown(context.WithoutCancel(ctx))
	cancel()
	<-ended
	<-ended
	closeQuietly(h.s.listener)
	if err != nil || h.s.limiter.Close() != nil {
		h.t.Error(err)
	}
}

// send sends a request and returns the status of the answer.
func (h *hourOf) send(method, path, from, bearer, body string) int {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	r.RemoteAddr = from
	r.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	_, _ = io.Copy(io.Discard, w.Result().Body)
	return w.Code
}

const ownHost = "192.0.2.7:5000" // of callers with bearer tokens

// attack sends a minute's attacks.
func (h *hourOf) attack(minute int) {
	wrong := fmt.Sprintf("guess-%d-0123456789abcdef", minute)
	h.secrets = append(h.secrets, wrong)
	want := func(kind string, got, status int) {
		if got != status {
			h.t.Errorf("minute %d, %s: got %d, want %d", minute, kind, got, status)
		}
	}
	for range 200 { // a flood from one address, with the bearer token in the path as well
		want("token", h.send("GET", "/v1/admin/entities/"+wrong, "198.51.100.1:1", wrong, ""), 401)
	}
	for i := range 1200 { // more addresses than are counted
		from := fmt.Sprintf("[2001:db8:%x:%x::%x]:1", minute, i, i)
		want("token", h.send("POST", "/v1/reserve", from, wrong, askRPM), 401)
	}
	for range 50 {
		want("role", h.send("PUT", "/v1/admin/system/limits", ownHost, callToken, "{}"), 403)
	}
	big := strings.Repeat("x", 256<<10+1)
	for range 10 {
		want("body", h.send("POST", "/v1/reserve", ownHost, callToken, big), 413)
	}
	for _, name := range hostileNames {
		quoted, err := json.Marshal(name)
		if err != nil {
			h.t.Fatal(err)
		}
		body := `{"entity":` + string(quoted) + `,"resource":"llm","costs":{"rpm":1}}`
		want("name", h.send("POST", "/v1/reserve", ownHost, callToken, body), 400)
		escaped := "/v1/admin/entities/" + url.PathEscape(name)
		want("name", h.send("PUT", escaped, ownHost, adminToken, "{}"), 400)
		want("token", h.send("PUT", escaped, "203.0.113.9:1", wrong, "{}"), 401)
	}
	forged := url.QueryEscape(`a","caller":"ops","result":"done`) // but a name
	want("forged", h.send("GET", "/v1/status?resource=llm&entity="+forged, ownHost, callToken, ""), 200)
	for range 30 { // beyond MaxLeases
		h.send("POST", "/v1/reserve", ownHost, callToken, askRPM)
	}
}

// hourChange is a change that the hour makes, and the fields that its line must have.
type hourChange struct {
	minute             int
	method, path, body string
	status             int
	fields             []string
}

var hourChanges = []hourChange{
	{
		3, "PUT", "/v1/admin/system/limits", `{"limits":{"rpm":{"capacity":900}}}`, 200,
		[]string{
			"action=limits_set", "place=system", "result=done",
			`before="rpm 1000000 per 60s"`, `after="rpm 900 per 60s"`,
		},
	},
	{
		4, "PUT", "/v1/admin/resources/llm/limits", `{"limits":{"slots":{"kind":"concurrency","capacity":5,"timeout":60}}}`,
		200, []string{
			"action=limits_set", "place=resource", "resource=llm", "before=none",
			`after="slots 5 at once"`,
		},
	},
	{
		5, "PUT", "/v1/admin/entities/acme", `{}`, 200,
		[]string{"action=entity_set", "place=entity", "entity=acme", `after="no parent"`},
	},
	{
		6, "PUT", "/v1/admin/entities/bot", `{"parent":"acme","cascade":true}`, 200,
		[]string{"action=entity_set", "entity=bot", `after="parent acme, cascade"`},
	},
	{
		7, "PUT", "/v1/admin/entities/bot/limits?resource=llm", `{"limits":{"rpm":{"capacity":0}}}`, 400,
		[]string{"action=limits_set", "entity=bot", "resource=llm", "result=refused", "status=400"},
	},
	{
		8, "PUT", "/v1/admin/system/on_unavailable", `{"on_unavailable":"allow"}`, 200,
		[]string{"action=on_unavailable_set", "before=block", "after=allow"},
	},
	{
		9, "PUT", "/v1/admin/system/retention", `{"usage_days":7}`, 400,
		[]string{"action=retention_set", "place=system", "result=refused"},
	},
	{
		10, "DELETE", "/v1/admin/entities/acme", "", 409,
		[]string{"action=entity_deleted", "entity=acme", "result=refused", "status=409"},
	},
	{
		11, "DELETE", "/v1/admin/entities/bot", "", 200,
		[]string{
			"action=entity_deleted", "entity=bot", `before="parent acme, cascade"`, "after=none",
		},
	},
	{
		12, "DELETE", "/v1/admin/resources/llm/limits", "", 200,
		[]string{
			"action=limits_deleted", "resource=llm", `before="slots 5 at once"`, "after=none",
		},
	},
}

// hourReload is a change of a file, and the fields of the line about it.
type hourReload struct {
	minute     int
	file, text string
	signal     bool
	fields     []string
}

func hourReloads() []hourReload {
	const limits, tokens = "limits.yaml", "tokens.yaml"
	more := plenty + "resources:\n  llm: {limits: {tpm: {capacity: 5}}}\nentities:\n  new: {}\n"
	return []hourReload{
		{20, limits, more, false, []string{
			"msg=reloaded", "what=limits", "cause=file_change", "system_changed=false",
			"resources_added=1", "entities_added=1", "entities_removed=0",
		}},
		{21, limits, "version: 1\nnonsense: [\n", false, []string{
			`msg="reload refused"`, "what=limits", "cause=file_change", "error=",
		}},
		{22, limits, plenty, true, []string{
			"msg=reloaded", "what=limits", "cause=signal", "resources_removed=1",
		}},
		{23, tokens, tokensFile("{name: ops, role: admin, token: " + adminToken + "}"), false, []string{
			"msg=reloaded", "what=tokens", "cause=file_change", "added=0", "changed=0", "removed=2",
		}},
		{24, tokens, "tokens: " + adminToken, true, []string{
			`msg="reload refused"`, "what=tokens", "cause=signal", "error=",
		}},
		{25, tokens, threeTokens(), false, []string{"msg=reloaded", "what=tokens", "added=2"}},
	}
}

// TestHour lets a virtual hour of attacks and changes pass, and then finds each in the log by its
// fields. The log is bounded, has no secret, and no caller has forged a line or a field.
func TestHour(t *testing.T) {
	t.Parallel()
	for name, inJSON := range map[string]bool{"text": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testHour(t, inJSON) })
		})
	}
}

func testHour(t *testing.T, inJSON bool) {
	h := newHour(t, inJSON, slog.LevelInfo)
	reloads := hourReloads()
	h.run(func(minute int) {
		if minute < 20 || minute > 25 { // the tokens change then
			h.attack(minute)
		}
		for _, c := range hourChanges {
			if c.minute != minute {
				continue
			}
			if got := h.send(c.method, c.path, ownHost, adminToken, c.body); got != c.status {
				t.Errorf("%s %s: got %d, want %d", c.method, c.path, got, c.status)
			}
		}
		for _, r := range reloads {
			if r.minute == minute {
				h.reload(r)
			}
		}
	})
	lines := h.checkLines(inJSON)
	h.checkBounds()
	h.checkSecrets()
	h.checkFound(lines, reloads)
	checkRows(t, lines)
	checkExamples(t, lines, "2000-01-01T00")
}

func (h *hourOf) reload(r hourReload) {
	write(h.t, h.dir, r.file, r.text)
	if r.signal {
		_ = h.s.Reload(h.t.Context()) // the result is in the log
	}
}

// checkFound looks for each change, reload and kind of attack.
func (h *hourOf) checkFound(lines []string, reloads []hourReload) {
	h.t.Helper()
	at := func(minute int) string { return fmt.Sprintf("time=2000-01-01T00:%02d:", minute) }
	for _, c := range hourChanges {
		of := []string{"msg=change", "caller=ops", "from=192.0.2.7", at(c.minute)}
		h.wantLines(lines, 1, append(of, c.fields...)...)
	}
	for _, r := range reloads {
		h.wantLines(lines, 1, append(r.fields, at(r.minute))...)
	}
	h.wantLines(lines, refusalsOfOne, "msg=refused", "kind=token", "from=198.51.100.1",
		"route=/v1/admin/entities/{entity}", "path=(hidden)", at(30))
	h.wantLines(lines, 1, `msg="refusals left out"`, "kind=token", "from=198.51.100.1",
		"left_out=195", at(31))
	h.wantLines(lines, 1, `msg="refusals left out"`, "kind=token", "from=others", "more=true",
		at(31))
	h.wantLines(lines, refusalsOfOne, "msg=refused", "kind=role", "caller=checkout", "role=call",
		"route=/v1/admin/system/limits", "path=/v1/admin/system/limits", at(30))
	h.wantLines(lines, 1, `msg="refusals left out"`, "kind=role", "caller=checkout", "left_out=45",
		at(31))
	for _, kind := range []string{"body", "request", "load"} {
		h.wantLines(lines, refusalsOfOne, "msg=refused", "kind="+kind, "caller=checkout", at(30))
		h.wantLines(lines, 1, `msg="refusals left out"`, "kind="+kind, "caller=checkout", at(31))
	}
	h.wantLines(lines, len(hostileNames), "msg=change", "action=entity_set", "result=refused", at(30))
	h.wantLines(lines, 1, "msg=listening", "version=v1.2.3", "store=memory:", "namespace=-",
		"bearer_tokens=3", at(0))
	h.wantLines(lines, 1, `msg="shut down"`, "version=v1.2.3", "store=memory:")
}

// wantLines checks how many lines have all of some fields. A field without a value has any.
func (h *hourOf) wantLines(lines []string, want int, fields ...string) {
	h.t.Helper()
	n := 0
	for _, line := range lines {
		if !slices.ContainsFunc(fields, func(f string) bool {
			return !strings.Contains(" "+line, " "+f) // as grep finds it
		}) {
			n++
		}
	}
	if n != want {
		h.t.Errorf("%d lines have %q, want %d", n, fields, want)
	}
}

// lineFields is a line of the log in text.
var lineFields = regexp.MustCompile(`^time=2000-01-01T0[01]:[0-9:.]+Z level=(DEBUG|INFO|WARN|ERROR) ` +
	`msg=("[a-z :,]+"|[a-z]+)( [a-z_]+=("([ !#-\[\]-~]|\\["\\nt])*"|[!#-<>-~]*))*$`)

// checkLines checks the form of each line, and returns the lines in the form of text.
func (h *hourOf) checkLines(inJSON bool) []string {
	h.t.Helper()
	var lines []string
	for line := range strings.Lines(h.log.String()) {
		line = strings.TrimSuffix(line, "\n")
		if inJSON {
			line = textOf(h.t, line)
		}
		if !lineFields.MatchString(line) {
			h.t.Errorf("the line has another form: %q", line)
		}
		if strings.Contains(line, "caller=ops") && strings.Contains(line, "action=entity_deleted") &&
			!strings.Contains(line, "from=192.0.2.7 place=entity") {
			h.t.Errorf("a caller has forged a line: %q", line)
		}
		lines = append(lines, line)
	}
	return lines
}

// textOf returns a line in JSON as one in text.
func textOf(t *testing.T, line string) string {
	t.Helper()
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("a line has a control character, or is not ASCII: %q", line)
	}
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	var fields []string
	for d.More() {
		var pair [2]string
		for i := range pair {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			pair[i] = fmt.Sprint(token)
		}
		if pair[1] == "" || strings.ContainsAny(pair[1], ` "=`) {
			pair[1] = strconv.Quote(pair[1])
		}
		fields = append(fields, pair[0]+"="+pair[1])
	}
	return strings.Join(fields, " ")
}

// checkBounds checks that no minute has too many lines, and no line too many bytes.
func (h *hourOf) checkBounds() {
	h.t.Helper()
	minutes := map[string]int{}
	text, longest := h.log.String(), 0
	stamp := regexp.MustCompile(`2000-01-01T0[01]:\d\d`)
	for line := range strings.Lines(text) {
		longest = max(longest, len(line))
		minutes[stamp.FindString(line)]++
	}
	most := 0
	for _, n := range minutes {
		most = max(most, n)
	}
	h.t.Logf("%d bytes in %d lines, at most %d lines in a minute, and %d bytes in a line",
		len(text), strings.Count(text, "\n"), most, longest)
	if most > mostLinesAMinute || longest > mostBytesALine {
		h.t.Errorf("want at most %d lines in a minute and %d bytes in a line",
			mostLinesAMinute, mostBytesALine)
	}
}

// checkSecrets checks that the log has no part of a bearer token, nor of a wrong one.
func (h *hourOf) checkSecrets() {
	h.t.Helper()
	text := h.log.String()
	const part = 8
	for _, secret := range h.secrets {
		for i := range len(secret) - part + 1 {
			if strings.Contains(text, secret[i:i+part]) {
				h.t.Fatalf("the log has %q of the bearer token %q", secret[i:i+part], secret)
			}
		}
	}
}
