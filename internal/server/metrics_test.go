package server

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// sample is a line of the page: a name, labels and a value.
var sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:\w+="(?:[^"\\]|\\.)*",?)+\})? (\S+)$`)

// figures are the samples of the server's page of metrics.
func (w *world) figures(t *testing.T, bearer string) map[string]float64 {
	t.Helper()
	got := w.ask(t, "/metrics", "", bearer)
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("metrics: got %d, %s: %s", got.status, got.header.Get("Content-Type"), got.body)
	}
	all := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(got.body)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "# HELP ") || strings.HasPrefix(line, "# TYPE ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("metrics: %q is not a sample", line)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if _, twice := all[m[1]+m[2]]; err != nil || twice {
			t.Fatalf("metrics: %q: error %v, twice %t", line, err, twice)
		}
		all[m[1]+m[2]] = value
	}
	return all
}

const limitsForMetrics = `version: 1
system:
  limits:
    rpm: {capacity: 1}
    slots: {kind: concurrency, capacity: 5, timeout: 300}
    soft: {capacity: 2, enforce: false}
resources:
  plain:
    limits: {rpm: {capacity: 1000000}}
`

// TestMetrics checks that calls are counted by outcome, and each limit by its own decision.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := start(t, &Options{LimitsFile: write(t, t.TempDir(), "limits.yaml", limitsForMetrics), Version: "v1.2.3"})
	id := weir.NewLeaseID(time.Now()).String()
	reserve := func(rpm, soft, slots int, id string) string {
		return fmt.Sprintf(`{"lease_id":%q,"entity":"acme","resource":"llm","costs":{"rpm":%d,"soft":%d,"slots":%d}}`,
			id, rpm, soft, slots)
	}
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/v1/reserve", reserve(1, 3, 2, id), 200},
		{"/v1/reserve", reserve(1, 3, 2, id), 200}, // a replay
		{"/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"rpm":1}}`, 429},
		{"/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"rpm":2}}`, 422},
		{"/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"none":2}}`, 404},
		{"/v1/reserve", `{"entity":"acme","resource":"llm","costs":{"rpm":-2}}`, 400},
		{"/v1/adjust", `{"lease_id":"` + id + `","seq":1,"totals":{"soft":5}}`, 200},
		{"/v1/complete", `{"lease_id":"` + id + `","actuals":{"soft":7}}`, 200},
		{"/v1/complete", `{"lease_id":"` + id + `","actuals":{"soft":7}}`, 200}, // a replay
		{"/v1/cancel", `{"lease_id":"` + id + `"}`, 409},
		{"/v1/nowhere", "", 404},
		{"/v1/entities/acme/children", "", 200},
	} {
		if got := w.ask(t, c.path, c.body, ""); got.status != c.want {
			t.Fatalf("%s %s: got %d %s, want %d", c.path, c.body, got.status, got.body, c.want)
		}
	}
	figures := w.figures(t, "")
	for series, want := range map[string]float64{
		`weir_build_info{version="v1.2.3"}`:                                                   1,
		`weir_decisions_total{outcome="admitted",verb="reserve"}`:                             1,
		`weir_decisions_total{outcome="replay",verb="reserve"}`:                               1,
		`weir_decisions_total{outcome="denied",verb="reserve"}`:                               1,
		`weir_decisions_total{outcome="never_satisfiable",verb="reserve"}`:                    1,
		`weir_decisions_total{outcome="unknown_limit",verb="reserve"}`:                        1,
		`weir_decisions_total{outcome="done",verb="complete"}`:                                1,
		`weir_decisions_total{outcome="replay",verb="complete"}`:                              1,
		`weir_decisions_total{outcome="conflict",verb="cancel"}`:                              1,
		`weir_limit_decisions_total{kind="bucket",limit="rpm",outcome="admitted"}`:            1,
		`weir_limit_decisions_total{kind="bucket",limit="rpm",outcome="denied"}`:              1,
		`weir_limit_decisions_total{kind="bucket",limit="soft",outcome="shadow_exceeded"}`:    1,
		`weir_limit_decisions_total{kind="concurrency",limit="slots",outcome="admitted"}`:     2,
		`weir_units_reserved_total{kind="bucket",limit="rpm"}`:                                1,
		`weir_units_reserved_total{kind="bucket",limit="soft"}`:                               3,
		`weir_units_reserved_total{kind="concurrency",limit="slots"}`:                         2,
		`weir_units_used_total{kind="bucket",limit="rpm"}`:                                    1,
		`weir_units_used_total{kind="bucket",limit="soft"}`:                                   7,
		`weir_units_used_total{kind="concurrency",limit="slots"}`:                             2,
		`weir_requests_total{code="200",method="POST",route="/v1/reserve"}`:                   2,
		`weir_requests_total{code="429",method="POST",route="/v1/reserve"}`:                   1,
		`weir_requests_total{code="404",method="GET",route="other"}`:                          1,
		`weir_requests_total{code="200",method="GET",route="/v1/entities/{entity}/children"}`: 1,
		`weir_requests_in_flight`:                                                             1, // this request
		`weir_connections_limit`:                                                              8192,
		`weir_resolution_cache_size`:                                                          1,
		`go_goroutines`:                                                                       figures["go_goroutines"],
		`process_open_fds`:                                                                    figures["process_open_fds"],
		`weir_resolution_cache_hits_total`:                                                    figures["weir_resolution_cache_hits_total"],
	} {
		got, ok := figures[series]
		if !ok || got != want {
			t.Errorf("%s: got %v (%t), want %v", series, got, ok, want)
		}
	}
}

// TestAlertedCountsBeginAtZero checks that the counts that alerts compare are there before anything
// was counted, because a count that begins at one has not risen for Prometheus.
func TestAlertedCountsBeginAtZero(t *testing.T) {
	t.Parallel()
	figures := start(t, nil).figures(t, "")
	for series, want := range map[string]float64{
		`weir_decisions_total{outcome="admitted",verb="reserve"}`:    0,
		`weir_decisions_total{outcome="denied",verb="reserve"}`:      0,
		`weir_decisions_total{outcome="unavailable",verb="reserve"}`: 0,
		`weir_decisions_total{outcome="degraded",verb="reserve"}`:    0,
		`weir_decisions_total{outcome="superseded",verb="reserve"}`:  0,
		`weir_reloads_total{outcome="refused",what="limits"}`:        0,
		`weir_reload_last_successful{what="limits"}`:                 1,
		`weir_ready`: 1,
	} {
		if got, ok := figures[series]; !ok || got != want {
			t.Errorf("%s: got %v (%t), want %v", series, got, ok, want)
		}
	}
}

// TestMetricsAreWellNamed runs the linter of Prometheus.
func TestMetricsAreWellNamed(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	w.ask(t, "/v1/reserve", askRPM, "")
	gathered, err := w.server.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(gathered).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: got %v and error %v", problems, err)
	}
}

// TestMetricsAreBounded checks that no series is made for names that callers choose, and that
// limits that requests bring get at most maxLimitLabels series.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	w := start(t, &Options{LimitsFile: write(t, t.TempDir(), "limits.yaml",
		"version: 1\nresources: {llm: {limits: {rpm: {capacity: 1}}}}\n")})
	meet := func(from, to int) {
		for i := from; i < to; i++ {
			// One request that is admitted, one that is denied, one that brings a limit, and
			// unknown paths.
			for _, c := range []struct {
				path, body string
				want       int
			}{
				{"/v1/reserve", fmt.Sprintf(`{"entity":"entity%d","resource":"llm","costs":{"rpm":1}}`, i), 200},
				{"/v1/reserve", fmt.Sprintf(`{"entity":"entity%d","resource":"llm","costs":{"rpm":1}}`, i), 429},
				{"/v1/reserve", fmt.Sprintf(`{"entity":"entity%d","resource":"resource%d","costs":{"brought%d":1},`+
					`"limits":{"brought%d":{"capacity":5}}}`, i, i, i, i), 200},
				{fmt.Sprintf("/v1/entities/entity%d/children", i), "", 200},
				{fmt.Sprintf("/v1/resources/resource%d/capacity", i), "", 200},
				{fmt.Sprintf("/entity%d", i), "", 404},
			} {
				if got := w.ask(t, c.path, c.body, ""); got.status != c.want {
					t.Fatalf("%s %s: got %d %s, want %d", c.path, c.body, got.status, got.body, c.want)
				}
			}
		}
	}
	const some, many = maxLimitLabels + 10, 1000
	meet(0, some)
	w.figures(t, "")
	before := w.figures(t, "")
	meet(some, many)
	after := w.figures(t, "")
	t.Logf("%d series after %d entities, %d after %d", len(before), some, len(after), many)
	brought := 0
	for series := range after {
		if _, ok := before[series]; !ok {
			t.Errorf("%s is new", series)
		}
		if strings.Contains(series, "entity1") || strings.Contains(series, "resource1") {
			t.Errorf("%s names an entity or a resource", series)
		}
		if strings.HasPrefix(series, "weir_units_reserved_total") {
			brought++
		}
	}
	if brought != maxLimitLabels+1 {
		t.Errorf("got units reserved for %d limits, want %d and one for the others", brought, maxLimitLabels)
	}
	for series, want := range map[string]float64{
		`weir_decisions_total{outcome="admitted",verb="reserve"}`:    2 * many,
		`weir_decisions_total{outcome="denied",verb="reserve"}`:      many,
		`weir_units_reserved_total{kind="bucket",limit="rpm"}`:       many,
		`weir_units_reserved_total{kind="bucket",limit="brought1"}`:  1,
		`weir_units_reserved_total{kind="bucket",limit="other"}`:     many - (maxLimitLabels - 1),
		`weir_requests_total{code="404",method="GET",route="other"}`: many,
	} {
		if after[series] != want {
			t.Errorf("%s: got %v, want %v", series, after[series], want)
		}
	}
}

func TestLimitLabels(t *testing.T) {
	t.Parallel()
	var l limitLabels
	for i := range 2 * maxLimitLabels {
		name := fmt.Sprintf("limit%d", i)
		want := name
		if i >= maxLimitLabels {
			want = otherLabel
		}
		for range 2 {
			if got := l.label(name); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	}
}

// TestMetricsNeedARole checks that, with bearer tokens in use, /metrics needs the role read.
func TestMetricsNeedARole(t *testing.T) {
	t.Parallel()
	w := start(t, &Options{TokensFile: write(t, t.TempDir(), "tokens.yaml", threeTokens())})
	for bearer, want := range map[string]int{
		"": 401, "nobody-0123456789": 401, readToken: 200, callToken: 200, adminToken: 200,
	} {
		got := w.ask(t, "/metrics", "", bearer)
		if got.status != want {
			t.Errorf("%q: got %d, want %d", bearer, got.status, want)
		}
		if want == 401 {
			api := w.ask(t, "/v1/status?entity=acme", "", bearer)
			for _, name := range []string{"WWW-Authenticate", "Content-Type", "Cache-Control"} {
				if got.header.Get(name) != api.header.Get(name) {
					t.Errorf("%q: got %s %q, want %q as the API", bearer, name, got.header.Get(name), api.header.Get(name))
				}
			}
			if string(got.body) != string(api.body) {
				t.Errorf("%q: got %s, want %s as the API", bearer, got.body, api.body)
			}
		}
	}
	if got := w.ask(t, "/metrics", "{}", adminToken); got.status != 405 || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d and Allow %q", got.status, got.header.Get("Allow"))
	}
}

// TestDegraded checks that a degraded reservation is counted as degraded.
func TestDegraded(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := startOver(t, brokenStore{store}, &Options{Limiter: &limiter.Options{OnUnavailable: weir.Allow}})
	if got := w.ask(t, "/v1/reserve", askRPM, ""); got.status != http.StatusOK ||
		!strings.Contains(string(got.body), `"degraded":true`) {
		t.Errorf("got %d %s, want a degraded lease", got.status, got.body)
	}
	figures := w.figures(t, "")
	if got := figures[`weir_decisions_total{outcome="degraded",verb="reserve"}`]; got != 1 {
		t.Errorf("got %v degraded, want 1", got)
	}
	if got, ok := figures[`weir_units_reserved_total{kind="bucket",limit="rpm"}`]; ok {
		t.Errorf("got %v units reserved, want none", got)
	}
}

// Each set of labels is looked up once, however many goroutines ask at the same time, and all get
// the same series.
func TestSeries(t *testing.T) {
	t.Parallel()
	const callers, sets = 8, 50
	type labels struct {
		name   string
		number int
	}
	looked := map[labels]int{} // seriesCache makes one call at a time
	s := newSeriesCache(func(l labels) *labels {
		looked[l]++
		return &l
	})
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range 4 * sets {
				want := labels{"a", i % sets}
				if i%2 == 1 {
					want.name = "b"
				}
				if got := s.of(want); *got != want || got != s.of(want) {
					t.Errorf("got %v, want %v", *got, want)
				}
			}
		})
	}
	all.Wait()
	if len(looked) != sets {
		t.Errorf("looked for %d sets, want %d", len(looked), sets)
	}
	for l, n := range looked {
		if n != 1 {
			t.Errorf("looked for %v %d times", l, n)
		}
	}
}
