package httpapi

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

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/manifest"
)

// fuzzedServer is the handler on a loopback port, in the world of the document's examples. Its clock
// moves with the requests, so that a run with the same seed is the same run.
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
	}, &weir.Options{LeaseMemory: 24 * time.Hour})
	h := wrap(fullHandler(w))
	s := &fuzzedServer{statuses: map[string]map[int]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		// What administrators did before must not starve the reservations.
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

// table is how often each route gave each answer.
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

// fuzzReport is what schemathesis says at its end.
type fuzzReport struct {
	Complete   bool
	StopReason string `json:"stop_reason"`
	Operations struct{ Total, Tested, Errored, Skipped int }
	Phases     map[string]struct{ Status string }
	TestCases  struct {
		Generated int
		Errored   int
	} `json:"test_cases"`
	Failures []struct {
		Type, Title string
		Count       int
		Operations  []string
	}
	Errors []struct {
		Title string
		Count int
	}
}

// fuzz asks a server everything that the document lets schemathesis think of, and more.
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
	cmd.Dir = dir // it leaves files behind
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

// No request makes the handler fail, or answer what the document does not say.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	examples := 50
	if os.Getenv("WEIR_SOAK") != "" {
		examples = 2000
	}
	s := newFuzzedServer(t, func(h http.Handler) http.Handler { return h })
	report, output := fuzz(t, s, "--seed", "1", "--max-examples", strconv.Itoa(examples))
	if len(report.Failures) > 0 || len(report.Errors) > 0 {
		t.Error(output)
	}
	t.Logf("%+v%s", *report, s.table())
}
