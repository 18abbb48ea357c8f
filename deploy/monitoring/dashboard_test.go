package monitoring

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// classic is the form that every Grafana imports; older ones do not know the one that follows it.
type classic = dashboard.Dashboard //nolint:staticcheck // see above

// panel is a panel of the dashboard with the row that it is in.
type panel struct {
	row string
	*dashboard.Panel
	queries []grafana.Dataquery
}

// readDashboard reads the dashboard by Grafana's own definition of its form, which refuses unknown
// fields, and returns its panels without the rows.
func readDashboard(t *testing.T) (*classic, []panel) {
	t.Helper()
	data, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterDataqueryVariant(grafana.VariantConfig())
	if err := new(classic).UnmarshalJSONStrict(data); mistaken(err) {
		t.Fatal(err)
	}
	var d classic // the strict method keeps no panels
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	var panels []panel
	row := ""
	for _, p := range d.Panels {
		if p.RowPanel != nil {
			row = *p.RowPanel.Title
			continue
		}
		one := panel{row: row, Panel: p.Panel}
		for _, of := range p.Panel.Targets {
			q, ok := of.(grafana.Dataquery)
			if pointer, is := of.(*grafana.Dataquery); is {
				q, ok = *pointer, true
			}
			if !ok {
				t.Fatalf("%s: the query is a %T", *p.Panel.Title, of)
			}
			one.queries = append(one.queries, q)
		}
		panels = append(panels, one)
	}
	return &d, panels
}

// mistaken reports whether an error of the strict method is one: without a mistake it returns an
// empty list of mistakes, which is not a nil error.
func mistaken(err error) bool { return err != nil && err.Error() != "" }

// filledIn returns a query with the dashboard's variables filled in as Grafana does, with all
// servers, and a scrape each minute.
func filledIn(expr string) string {
	return strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "4m").Replace(expr)
}

// metricsOf returns the names of the metrics in an expression.
func metricsOf(t *testing.T, expr string) []string {
	t.Helper()
	parsed, err := newParser().ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var out []string
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
					out = append(out, m.Value)
				}
			}
		}
		return nil
	})
	return out
}

// TestDashboardForm checks what Grafana's definition does not: that panels do not overlap, have
// distinct IDs, a description and a unit, and that each query parses, asks the chosen data source,
// and selects by the dashboard's variables.
func TestDashboardForm(t *testing.T) {
	t.Parallel()
	d, panels := readDashboard(t)
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if d.SchemaVersion != dashboard.NewDashboard().SchemaVersion {
		t.Errorf("got schema version %d, want %d", d.SchemaVersion, dashboard.NewDashboard().SchemaVersion)
	}
	ids, cells := map[uint32]bool{}, map[[2]uint32]string{}
	for _, p := range d.Panels {
		id, at := uint32(0), (*dashboard.GridPos)(nil)
		if p.RowPanel != nil {
			id, at = p.RowPanel.Id, p.RowPanel.GridPos
		} else {
			id, at = *p.Panel.Id, p.Panel.GridPos
		}
		if ids[id] || at.X+at.W > 24 {
			t.Errorf("panel %d: twice, or too wide", id)
		}
		ids[id] = true
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if cells[[2]uint32{x, y}] != "" {
					t.Errorf("panel %d overlaps", id)
				}
				cells[[2]uint32{x, y}] = "taken"
			}
		}
	}
	for _, p := range panels {
		if p.Description == nil || !strings.HasSuffix(*p.Description, ".") || p.FieldConfig.Defaults.Unit == nil {
			t.Errorf("%s: no sentence describes it, or it has no unit", *p.Title)
		}
		if len(p.queries) == 0 {
			t.Errorf("%s: no query", *p.Title)
		}
		for _, q := range p.queries {
			if *p.Datasource.Uid != "${datasource}" || *q.Datasource.Uid != "${datasource}" {
				t.Errorf("%s: another data source", *p.Title)
			}
			selectors := len(metricsOf(t, filledIn(q.Expr)))
			if n := strings.Count(q.Expr, `{job=~"$job", instance=~"$instance"`); n != selectors || n == 0 {
				t.Errorf("%s: %s: %d of %d selectors have the variables", *p.Title, q.Expr, n, selectors)
			}
		}
	}
}

// TestDashboard evaluates each query on what servers of each store export under load: it returns
// data, numbers all, and names only metrics that these servers export.
func TestDashboard(t *testing.T) {
	t.Parallel()
	_, panels := readDashboard(t)
	const onMemory, onDynamoDB, onTigerBeetle = "a store in memory", "DynamoDB", "TigerBeetle"
	stores := map[string]func(*testing.T) *load{
		onMemory: memoryLoad, onDynamoDB: dynamoDBLoad, onTigerBeetle: tigerBeetleLoad,
	}
	rows := map[string][]string{
		onDynamoDB: {onDynamoDB}, onTigerBeetle: {onTigerBeetle},
		"Shared stores: DynamoDB and TigerBeetle": {onDynamoDB, onTigerBeetle},
	}
	for name, begin := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mine []panel
			for _, p := range panels {
				of, special := rows[p.row]
				if slices.Contains(of, name) || !special && name == onMemory {
					mine = append(mine, p)
				}
			}
			if len(mine) == 0 {
				t.Fatal("no panel")
			}
			l := begin(t)
			l.play(12)
			for _, p := range mine {
				p.check(t, l)
			}
			t.Logf("%d panels on %d series", len(mine), len(l.archive.series))
		})
	}
}

// check evaluates the queries of a panel at the end of a load.
func (p *panel) check(t *testing.T, l *load) {
	t.Helper()
	for _, q := range p.queries {
		expr := filledIn(q.Expr)
		for _, name := range metricsOf(t, expr) {
			if !l.exports(name) {
				t.Errorf("%s: the server does not export %s", *p.Title, name)
			}
		}
		got, err := query(t.Context(), l.engine, l.archive, expr, l.at)
		if err != nil {
			t.Errorf("%s: %s: %v", *p.Title, expr, err)
		}
		if len(got) == 0 {
			t.Errorf("%s: %s: no data", *p.Title, expr)
		}
		for _, s := range got {
			if math.IsNaN(s.F) || math.IsInf(s.F, 0) {
				t.Errorf("%s: %s: %s is %v", *p.Title, expr, s.Metric, s.F)
			}
		}
		if legend := q.LegendFormat; len(got) > 1 && (legend == nil || !strings.Contains(*legend, "{{")) {
			t.Errorf("%s: %d series, and the legend does not tell them apart", *p.Title, len(got))
		}
	}
}

// TestDashboardShowsLoad compares figures of the dashboard with the load that was played: six of nine
// reservations a minute are admitted, two are denied, and one is a mistake.
func TestDashboardShowsLoad(t *testing.T) {
	t.Parallel()
	_, panels := readDashboard(t)
	l := memoryLoad(t)
	l.play(12)
	for title, want := range map[string]float64{
		"Servers ready": 1, "Servers not ready": 0, "Reservations": 9.0 / 60, "Denied": 2.0 / 8, "Store failures": 0,
		"Used of reserved": 0.5, // of limit tpm, the last by name
	} {
		i := slices.IndexFunc(panels, func(p panel) bool { return *p.Title == title })
		if i < 0 {
			t.Fatalf("no panel %s", title)
		}
		got, err := query(t.Context(), l.engine, l.archive, filledIn(panels[i].queries[0].Expr), l.at)
		if err != nil || len(got) == 0 {
			t.Fatalf("%s: got %v, %v", title, got, err)
		}
		slices.SortFunc(got, func(a, b promSample) int { return labels.Compare(a.Metric, b.Metric) })
		if v := got[len(got)-1].F; math.Abs(v-want) > 0.001 {
			t.Errorf("%s: got %v, want %v", title, v, want)
		}
	}
}

// TestRulesNameRealMetrics checks that servers export each metric of the rules, or a rule records it.
func TestRulesNameRealMetrics(t *testing.T) {
	t.Parallel()
	exported := map[string]bool{"up": true}
	rules := readRules(t, rulesFile)
	for g := range rules.Groups {
		for i := range rules.Groups[g].Rules {
			exported[rules.Groups[g].Rules[i].Record] = true
		}
	}
	loads := []*load{memoryLoad(t), tigerBeetleLoad(t), dynamoDBLoad(t)}
	for _, l := range loads {
		l.play(1)
	}
	for g := range rules.Groups {
		for i := range rules.Groups[g].Rules {
			r := &rules.Groups[g].Rules[i]
			for _, name := range metricsOf(t, r.Expr) {
				if !exported[name] && !slices.ContainsFunc(loads, func(l *load) bool { return l.exports(name) }) {
					t.Errorf("%s%s: no server exports %s", r.Record, r.Alert, name)
				}
			}
		}
	}
}

// TestLinksOfAlerts checks that the page and the section that an alert links to are there, that the
// page about monitoring has each alert, and that each says what to do.
func TestLinksOfAlerts(t *testing.T) {
	t.Parallel()
	const repository = "https://github.com/weir-limiter/weir/blob/main/"
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := readRules(t, rulesFile)
	for g := range rules.Groups {
		for i := range rules.Groups[g].Rules {
			r := &rules.Groups[g].Rules[i]
			if r.Alert == "" {
				continue
			}
			if !strings.Contains(string(page), "`"+r.Alert+"`") {
				t.Errorf("%s: docs/monitoring.md does not have it", r.Alert)
			}
			for _, name := range []string{"summary", "description", "action"} {
				if r.Annotations[name] == "" {
					t.Errorf("%s: no %s", r.Alert, name)
				}
			}
			if s := r.Labels["severity"]; s != "page" && s != "warning" {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			link, ok := strings.CutPrefix(r.Annotations["runbook_url"], repository)
			file, section, _ := strings.Cut(link, "#")
			if !ok || !hasSection(t, "../../"+file, section) {
				t.Errorf("%s: %s leads nowhere", r.Alert, r.Annotations["runbook_url"])
			}
		}
	}
}

// hasSection reports whether a page has a heading with an anchor as GitHub makes it; an empty one is
// the page itself.
func hasSection(t *testing.T, file, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if level, title, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Trim(level, "#") == "" {
			slug := strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
					return r
				}
				return -1
			}, strings.ToLower(title))
			if slug == anchor {
				return true
			}
		}
	}
	return anchor == ""
}

// load plays calls over a server, and stores what it exports each minute.
type load struct {
	*scene

	server *target
	minute func()
}

// play plays minutes, without the rules.
func (l *load) play(minutes int) {
	l.t.Helper()
	for range minutes {
		l.minute()
		l.at = l.at.Add(time.Minute)
		l.server.scrape(l.archive, l.at)
	}
}

// exports reports whether the server exports a metric, or the parts of a histogram.
func (l *load) exports(name string) bool {
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if whole, ok := strings.CutSuffix(name, suffix); ok && l.server.types[whole] != "" {
			return suffix == "" || l.server.types[whole] == "histogram" || l.server.types[whole] == "summary"
		}
	}
	return false
}
