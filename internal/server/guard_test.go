package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestLoopbackOnly: without bearer tokens, a name that merely leads to this machine is not served.
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

// TestMetricsGuard: the page of metrics takes the same bearer tokens as the API does, and says the same
// of others.
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
	_ = got.Body.Close() // its status says it
	if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %s and Allow %q", got.Status, got.Header.Get("Allow"))
	}
}
