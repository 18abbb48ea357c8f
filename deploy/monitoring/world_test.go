package monitoring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/server"
	"github.com/weir-limiter/weir/memory"
)

// patience bounds every wait of a test. It is long because the machine may be slow.
const patience = time.Minute

// target is a server of a test, and its labels in Prometheus.
type target struct {
	t             *testing.T
	server        *server.Server
	client        *http.Client
	job, instance string
	// types are the types of the metrics that it exports, by name.
	types map[string]string
	stop  func()
}

// serve runs a server over a store until the test ends. Limits are a limits file; empty for a store
// that takes none.
func serve(t *testing.T, store driver.Store, limits string, o server.Options) *target {
	t.Helper()
	if limits != "" {
		o.LimitsFile = write(t, "limits.yaml", limits)
	}
	o.Watch = -1 // tests reload
	o.Bounds.ShutdownDelay = time.Millisecond
	s, err := server.New(t.Context(), store, &o)
	if err != nil {
		t.Fatal(err)
	}
	g := &target{t: t, server: s, client: &http.Client{Timeout: patience}, types: map[string]string{}}
	g.job, g.instance = "weir", strings.TrimPrefix(strings.TrimPrefix(s.URL(), "http://"), "https://")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	g.stop = func() {
		g.client.CloseIdleConnections()
		cancel()
		if err, ok := <-ended; ok && err != nil {
			t.Errorf("run: %v", err)
		}
		g.stop = func() {}
	}
	t.Cleanup(func() { g.stop() })
	return g
}

// write writes a private file into a folder of its own, and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// inMemory opens an empty store in memory.
func inMemory(t *testing.T) *memory.Store {
	t.Helper()
	s, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a request of JSON, and returns the status and the answer.
func (g *target) post(path, body string) (int, []byte) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.server.URL()+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return g.do(r)
}

func (g *target) do(r *http.Request) (int, []byte) {
	g.t.Helper()
	got, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer got.Body.Close() //nolint:errcheck // It was only read.
	body, err := io.ReadAll(got.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return got.StatusCode, body
}

// reserve reserves n times for an entity, each time one unit of a limit, and wants one status. It
// returns the answers.
func (g *target) reserve(n int, entity, limit string, want int) [][]byte {
	g.t.Helper()
	var all [][]byte
	for range n {
		status, body := g.post("/v1/reserve", fmt.Sprintf(`{"entity":%q,"resource":"llm","costs":{%q:1}}`, entity, limit))
		if status != want {
			g.t.Fatalf("reserve %s: got %d %s, want %d", limit, status, body, want)
		}
		all = append(all, body)
	}
	return all
}

// scrape reads the server's metrics and stores them with the labels of the target, as Prometheus
// does. A server that does not answer is not up, and its series end.
func (g *target) scrape(a *archive, at time.Time) {
	g.t.Helper()
	up := labels.FromStrings(model.MetricNameLabel, "up", "job", g.job, "instance", g.instance)
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.server.URL()+"/metrics", http.NoBody)
	if err != nil {
		g.t.Fatal(err)
	}
	got, err := g.client.Do(r)
	if err != nil {
		a.write(g.instance, at, promql.Vector{{Metric: up, F: 0}})
		return
	}
	defer got.Body.Close() //nolint:errcheck // It was only read.
	body, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK {
		g.t.Fatalf("metrics: got %d, error %v: %s", got.StatusCode, err, body)
	}
	found := promql.Vector{{Metric: up, F: 1}}
	for _, s := range g.samples(body) {
		b := labels.NewBuilder(s.Metric).Set("job", g.job).Set("instance", g.instance)
		found = append(found, promql.Sample{Metric: b.Labels(), F: s.F})
	}
	a.write(g.instance, at, found)
}

// samples parses a page of metrics with Prometheus's parser.
func (g *target) samples(page []byte) promql.Vector {
	g.t.Helper()
	var out promql.Vector
	for p := textparse.NewPromParser(page, labels.NewSymbolTable(), false); ; {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			g.t.Fatalf("metrics: %v", err)
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			g.types[string(bytes.Clone(name))] = string(kind)
		case textparse.EntrySeries:
			var of labels.Labels
			p.Labels(&of)
			_, _, v := p.Series()
			out = append(out, promql.Sample{Metric: of.Copy(), F: v})
		default: // help and comments
		}
	}
}

// scene plays time over real servers: it scrapes them at instants that it chooses, and evaluates the
// rules.
type scene struct {
	*evaluator

	t       *testing.T
	at      time.Time
	targets []*target
}

// newScene begins a scene at an instant, with a scrape.
func newScene(t *testing.T, at time.Time, targets ...*target) *scene {
	t.Helper()
	s := &scene{evaluator: newEvaluator(readRules(t, rulesFile)), t: t, at: at, targets: targets}
	s.pass(0)
	return s
}

// pass lets time pass, and then scrapes and evaluates.
func (s *scene) pass(d time.Duration) {
	s.t.Helper()
	s.at = s.at.Add(d)
	for _, g := range s.targets {
		g.scrape(s.archive, s.at)
	}
	if err := s.evaluate(s.t.Context(), s.at); err != nil {
		s.t.Fatal(err)
	}
}

// minutes plays some minutes, each with a scrape at its end.
func (s *scene) minutes(n int, each func()) {
	s.t.Helper()
	for range n {
		if each != nil {
			each()
		}
		s.pass(time.Minute)
	}
}

// fires checks which alerts fire now: these and no others, in the order of their names.
func (s *scene) fires(names ...string) {
	s.t.Helper()
	got, err := s.firing(s.t.Context(), s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	if !slices.Equal(got, names) {
		s.t.Errorf("at %v: got %v, want %v", s.at, got, names)
	}
}

// says checks that an annotation of an alert that has fired contains a text, and that no annotation
// has a mistake.
func (s *scene) says(alert, name, text string) {
	s.t.Helper()
	if got := s.said[alert][name]; !strings.Contains(got, text) {
		s.t.Errorf("%s: got %s %q, want it to have %q", alert, name, got, text)
	}
	for name, got := range s.said[alert] {
		if strings.Contains(got, "<error") || strings.Contains(got, "<no value>") || strings.Contains(got, "{{") {
			s.t.Errorf("%s: %s: %s", alert, name, got)
		}
	}
}

// value returns the only value of a query now.
func (s *scene) value(expr string) float64 {
	s.t.Helper()
	got, err := query(s.t.Context(), s.engine, s.archive, expr, s.at)
	if err != nil || len(got) != 1 {
		s.t.Fatalf("%s: got %v and error %v, want one value", expr, got, err)
	}
	return got[0].F
}

// eventually waits until a condition of a real server holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(patience)
	for !is() {
		select {
		case <-ticker.C:
		case <-late:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
