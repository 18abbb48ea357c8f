package httphandler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
)

// fuzzedServer is the handler on a loopback port, with the limits of the document's examples. Its
// clock advances with the requests, so that runs with the same seed are equal.
type fuzzedServer struct {
	*httptest.Server

	mu       sync.Mutex
	statuses map[string]map[int]int // by route
}

func newFuzzedServer(t *testing.T, wrap func(http.Handler) http.Handler) *fuzzedServer {
	t.Helper()
	parsed, err := manifest.Parse("limits.yaml", []byte(exampleLimits))
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	start := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	w := newExampleWorldAt(t, func() time.Time {
		return start.Add(time.Duration(requests.Load()) * 20 * time.Millisecond)
	}, &limiter.Options{LeaseMemory: 24 * time.Hour})
	h := wrap(fullHandler(w))
	s := &fuzzedServer{statuses: map[string]map[int]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		// Configuration changes by earlier requests must not make all reservations fail.
		if r.URL.Path == "/v1/reserve" {
			if err := w.limiter.Configure(r.Context(), parsed.Definitions); err != nil {
				t.Error(err)
			}
		}
		recorder := &statusRecorder{ResponseWriter: rw, status: http.StatusOK}
		h.ServeHTTP(recorder, r)
		s.count(r.Pattern, recorder.status)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *fuzzedServer) count(route string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statuses[route] == nil {
		s.statuses[route] = map[int]int{}
	}
	s.statuses[route][status]++
}

// table returns the number of answers by route and status.
func (s *fuzzedServer) table() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, route := range slices.Sorted(maps.Keys(s.statuses)) {
		fmt.Fprintf(&b, "\n%-50s", route)
		for _, status := range slices.Sorted(maps.Keys(s.statuses[route])) {
			fmt.Fprintf(&b, " %d: %d", status, s.statuses[route][status])
		}
	}
	return b.String()
}

type statusRecorder struct {
	http.ResponseWriter

	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// fuzzReport is the final report of schemathesis.
type fuzzReport struct {
	Complete   bool
	Filtered   int // failures that hooks.py expects
	Operations struct{ Tested int }
	Phases     map[string]struct{ Status string }
	TestCases  struct{ Generated int } `json:"test_cases"`
	Failures   []struct {
		Type, Title string
		Count       int
		Operations  []string
	}
	Errors []struct {
		Title string
		Count int
	}
}

// fuzz runs schemathesis against a server, with valid and invalid requests.
func fuzz(t *testing.T, s *fuzzedServer, arguments ...string) (report *fuzzReport, output string) {
	t.Helper()
	venv := testkit.Python(t, "schemathesis==4.32.5", "hypothesis==6.170.15")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(here, "testdata", "schemathesis")
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cmd := venv.Command(ctx, "schemathesis", slices.Concat([]string{
		"--config-file", filepath.Join(data, "config.toml"),
		"run", filepath.Join(here, "openapi.json"), "--url", s.URL, "--workers", "1",
		"--report", "json", "--report-json-path", filepath.Join(dir, "report.json"),
	}, arguments)...)
	cmd.Dir = dir // schemathesis leaves files here
	cmd.Env = append(cmd.Env, "PYTHONDONTWRITEBYTECODE=1", "WEIR_BEARER_TOKEN="+exampleToken,
		"SCHEMATHESIS_HOOKS="+filepath.Join(data, "hooks.py"))
	text, failed := cmd.CombinedOutput()
	said, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatalf("%v, %v: %s", failed, err, text)
	}
	report = &fuzzReport{}
	if err := json.Unmarshal(said, report); err != nil {
		t.Fatal(err)
	}
	return report, string(text)
}

// TestSchemathesis checks that no request makes the handler fail or give an undocumented answer.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	testSchemathesis(t, 1, soak.Amount(4, 10))
}

// TestSchemathesisSoak is TestSchemathesis with many more requests.
func TestSchemathesisSoak(t *testing.T) {
	soak.Only(t)
	t.Parallel()
	testSchemathesis(t, 2, 1000)
}

func testSchemathesis(t *testing.T, seed, examples int) {
	t.Helper()
	s := newFuzzedServer(t, func(h http.Handler) http.Handler { return h })
	report, output := fuzz(t, s, "--seed", strconv.Itoa(seed), "--max-examples", strconv.Itoa(examples))
	operations := len(readDocument(t, openAPIDocument).operations())
	if len(report.Failures) > 0 || len(report.Errors) > 0 || !report.Complete ||
		report.Operations.Tested != operations {
		t.Errorf("%+v\n%s", report, output)
	}
	t.Logf("%d operations, %d cases, %d well-formed requests refused for their meaning%s",
		report.Operations.Tested, report.TestCases.Generated, report.Filtered, s.table())
	for phase, ended := range report.Phases {
		if ended.Status != "success" {
			t.Errorf("phase %s: %s", phase, ended.Status)
		}
	}
	s.checkReached(t)
}

// checkReached fails the test if the run reached too few answers: a fuzzer whose requests are all
// refused finds nothing.
func (s *fuzzedServer) checkReached(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	settled := []int{200, 400, 401, 409, 415}
	special := map[string][]int{
		"POST /v1/reserve":                    {200, 400, 401, 404, 409, 415, 422, 429},
		"POST /v1/adjust":                     settled,
		"POST /v1/complete":                   settled,
		"DELETE /v1/admin/entities/{entity}":  {200, 400, 401, 404},
		"PUT /v1/admin/entities/{entity}":     {200, 400, 401, 415},
		"PUT /v1/admin/system/on_unavailable": {200, 400, 401, 415},
		"PUT /v1/admin/system/retention":      {200, 400, 401, 415},
		"GET /v1/admin/entities/{entity}":     {200, 400, 401, 404},
	}
	for _, o := range readDocument(t, openAPIDocument).operations() {
		want := special[o.pattern()]
		if want == nil {
			want = []int{200}
			if !slices.Contains(o.Tags, "server") {
				want = append(want, 401)
			}
		}
		for _, status := range want {
			if s.statuses[o.pattern()][status] == 0 {
				t.Errorf("%s never answered %d: the run has not reached it", o.pattern(), status)
			}
		}
	}
}
