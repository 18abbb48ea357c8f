package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestListen checks that the server listens only on loopback addresses without bearer tokens, and
// on any address with them.
func TestListen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address string
		code    weir.Code // empty if the address is allowed
		want    string    // a pattern
	}{
		{"127.0.0.1:0", "", ""},
		{"127.1.2.3:0", "", ""},
		{"localhost:0", "", ""},
		{"[::ffff:127.0.0.1]:0", "", ""},
		{":0", weir.Invalid, `":0": means every address of this machine.*insecure-no-tokens`},
		{"0.0.0.0:0", weir.Invalid, `means every address`},
		{"[::]:0", weir.Invalid, `means every address`},
		{"192.0.2.1:0", weir.Invalid, `"192\.0\.2\.1:0": can be reached from other machines: name a file of bearer tokens`},
		{"[2001:db8::1]:0", weir.Invalid, `means 2001:db8::1, which other machines can reach`},
		{"127.0.0.1", weir.Invalid, `must be host:port`},
		{"127.0.0.1:0:0", weir.Invalid, `must be host:port`},
		{"", weir.Invalid, `must be host:port`},
		{"127.0.0.1:99999", weir.Unavailable, `cannot be opened for listening.*99999`},
		{"no-such-host.invalid:0", weir.Unavailable, `cannot be resolved`},
	} {
		l, err := listen(t.Context(), "listen", c.address, false)
		if err == nil {
			if !isLoopback(l.Addr()) || c.code != "" {
				t.Errorf("%q: listens on %v, want an error with code %q", c.address, l.Addr(), c.code)
			}
			closeListener(t, l)
			continue
		}
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != c.code || e.Field != "listen" || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%q: got %v, want code %q and a match of %s", c.address, err, c.code, c.want)
		}
	}
	l, err := listen(t.Context(), "listen", "0.0.0.0:0", true)
	if err != nil {
		t.Fatalf("with bearer tokens: %v", err)
	}
	closeListener(t, l)
}

func closeListener(t *testing.T, l net.Listener) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// closedStore records whether it was closed.
type closedStore struct {
	*memory.Store
	closed int
}

func (s *closedStore) Close() error { s.closed++; return nil }

// TestNewRefuses checks that New reports all mistakes in the options, and closes the store.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := listen(t.Context(), "listen", "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer closeListener(t, taken)
	bad := write(t, dir, "bad.yaml", "version: 1\nsystem: {limits: {rpm: {capacity: 0}, tpm: {capacity: -1}}}\n")
	for name, c := range map[string]struct {
		options Options
		want    []string
	}{
		"a key alone":    {Options{KeyFile: "k"}, []string{`tls-cert "": must be given with --tls-key`}},
		"a cert alone":   {Options{CertFile: "c"}, []string{`tls-key "": must be given with --tls-cert`}},
		"standard input": {Options{LimitsFile: "-"}, []string{`limits "-": must be a regular file`}},
		"bounds": {
			Options{Bounds: Bounds{MaxBody: -1, MaxHeader: 1 << 30, ReadTimeout: -1, IdleTimeout: maxTimeout + 1}},
			[]string{`max-body "-1": must be above 0`, `max-header`, `read-timeout`, `idle-timeout`},
		},
		"the limiter's options": {Options{Limiter: &limiter.Options{CascadeDepth: 99}}, []string{`CascadeDepth`}},
		"files": {
			Options{LimitsFile: bad, TokensFile: dir + "/none", CertFile: bad, KeyFile: bad},
			[]string{`bad\.yaml:2:35: .*rpm`, `bad\.yaml:2:55: .*tpm`, `^tokens ".*none": no such file`, `bad\.yaml: tls: `},
		},
		"a port that is taken": {Options{Listen: taken.Addr().String()}, []string{`listen.*in use`}},
		"traces":               {Options{TraceEndpoint: "collector:4318"}, []string{`trace endpoint.*must be an http`}},
	} {
		open, err := memory.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		store := &closedStore{Store: open}
		s, err := New(t.Context(), store, &c.options)
		if err == nil {
			t.Errorf("%s: got a server on %v, want an error", name, s.Addr())
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%s: got\n%v\nwant %d mistakes", name, err, len(c.want))
			continue
		}
		for i, line := range lines {
			if !regexp.MustCompile(c.want[i]).MatchString(line) {
				t.Errorf("%s: got %s, want a match of %s", name, line, c.want[i])
			}
		}
		if store.closed != 1 {
			t.Errorf("%s: the store was closed %d times, want once", name, store.closed)
		}
	}
}

// TestLimitsFileOnOtherStores checks that a limits file is refused on a store that keeps its own
// configuration.
func TestLimitsFileOnOtherStores(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := write(t, t.TempDir(), "limits.yaml", plenty)
	_, err = New(t.Context(), struct{ driver.Store }{store}, &Options{LimitsFile: limits})
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unsupported || e.Field != "limits" || !strings.Contains(e.Reason, "set-limits") {
		t.Errorf("got %v, want advice to use set-limits", err)
	}
}

// TestLoopbackOnly checks that, without bearer tokens, requests for a host name that only resolves
// to this machine are refused.
func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	tokens := write(t, t.TempDir(), "tokens.yaml", threeTokens())
	for name, c := range map[string]struct {
		options Options
		bearer  string
		guarded bool
	}{
		"no bearer tokens":             {Options{}, "", true},
		"no bearer tokens, by choice":  {Options{NoTokens: true}, "", false},
		"bearer tokens":                {Options{TokensFile: tokens}, adminToken, false},
		"no bearer tokens, a name":     {Options{Listen: "localhost:0"}, "", true},
		"bearer tokens, every address": {Options{TokensFile: tokens, Listen: ":0"}, adminToken, false},
	} {
		w := start(t, &c.options)
		url := "http://" + strings.Replace(w.server.Addr().String(), "[::]", "127.0.0.1", 1)
		for host, local := range map[string]bool{
			"127.0.0.1:7117": true, "127.0.0.1": true, "[::1]:7117": true, "127.9.9.9": true, "localhost": true,
			"LOCALHOST:80": true, "localhost.": true, "weir.localhost": true, "[::ffff:127.0.0.1]": true,
			"attacker.example": false, "attacker.example:7117": false, "127.0.0.1.attacker.example": false,
			"192.0.2.1:7117": false, "localhost.attacker.example": false, "notlocalhost": false,
		} {
			for _, path := range []string{"/v1/status?entity=acme&resource=llm", "/metrics", "/healthz"} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = host
				if c.bearer != "" {
					r.Header.Set("Authorization", "Bearer "+c.bearer)
				}
				got, err := w.client.Do(r)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, host, err)
				}
				want := http.StatusOK
				if c.guarded && !local {
					want = http.StatusMisdirectedRequest
				}
				if got.StatusCode != want {
					t.Errorf("%s: %s for %s: got %d, want %d", name, path, host, got.StatusCode, want)
				}
				if err := got.Body.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestMetricsGuard checks that /metrics accepts the same bearer tokens as the API, and refuses
// others with the same answer.
func TestMetricsGuard(t *testing.T) {
	t.Parallel()
	w := start(t, &Options{TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens())})
	for _, c := range []struct {
		method string
		given  []string
		want   int
	}{
		{http.MethodGet, []string{"Bearer " + readToken}, http.StatusOK},
		{http.MethodGet, []string{"bearer  " + adminToken}, http.StatusOK},
		{http.MethodHead, []string{"Bearer " + callToken}, http.StatusOK},
		{http.MethodGet, nil, http.StatusUnauthorized},
		{http.MethodGet, []string{"Bearer"}, http.StatusUnauthorized},
		{http.MethodGet, []string{"Bearer =="}, http.StatusUnauthorized},
		{http.MethodGet, []string{"Bearer " + readToken + "x"}, http.StatusUnauthorized},
		{http.MethodGet, []string{"Basic " + readToken}, http.StatusUnauthorized},
		{http.MethodGet, []string{"Bearer " + readToken, "Bearer " + readToken}, http.StatusUnauthorized},
	} {
		var answers []string
		for _, path := range []string{"/metrics", "/v1/activity"} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, w.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header["Authorization"] = c.given
			got, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(got.Body)
			_ = got.Body.Close() // it has been read
			if err != nil || got.StatusCode != c.want {
				t.Errorf("%s %s with %q: got %d and error %v, want %d", c.method, path, c.given, got.StatusCode, err, c.want)
			}
			if c.want != http.StatusOK {
				answers = append(answers, got.Header.Get("WWW-Authenticate")+string(body))
			}
		}
		if len(answers) == 2 && answers[0] != answers[1] {
			t.Errorf("with %q: the page of metrics says %s, the API %s", c.given, answers[0], answers[1])
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Body.Close() // its status is enough
	if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %s and Allow %q", got.Status, got.Header.Get("Allow"))
	}
}
