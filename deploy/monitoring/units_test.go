package monitoring

import (
	"bytes"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

// unitTests is a file of promtool's rule tests, as far as these tests use its form.
type unitTests struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []unitTest     `yaml:"tests"`
}

// unitTest has series with a sample at each interval from the instant 0, and what queries then
// return.
type unitTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Input    []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Queries []struct {
		Expr    string         `yaml:"expr"`
		At      model.Duration `yaml:"eval_time"`
		Samples []struct {
			Labels string  `yaml:"labels"`
			Value  float64 `yaml:"value"`
		} `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
}

// readUnits reads the file of tests, which promtool can run too.
func readUnits(t *testing.T) *unitTests {
	t.Helper()
	data, err := os.ReadFile("weir.rules.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out unitTests
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out.RuleFiles, []string{rulesFile}) || len(out.Tests) == 0 {
		t.Fatalf("got tests of %v", out.RuleFiles)
	}
	return &out
}

// TestRules runs weir.rules.test.yaml: each of its queries returns exactly the samples that the file
// has.
func TestRules(t *testing.T) {
	t.Parallel()
	rules, units := readRules(t, rulesFile), readUnits(t)
	for i := range units.Tests {
		of := &units.Tests[i]
		t.Run(of.Name, func(t *testing.T) {
			t.Parallel()
			of.run(t, rules, time.Duration(units.Interval))
		})
	}
}

// run evaluates the rules at each instant of a test, and then its queries.
func (u *unitTest) run(t *testing.T, rules *rulefmt.RuleGroups, interval time.Duration) {
	e := newEvaluator(rules)
	u.load(t, e.archive)
	begin := time.Unix(0, 0)
	var last time.Duration
	for _, q := range u.Queries {
		last = max(last, time.Duration(q.At))
	}
	for at := time.Duration(0); at <= last; at += interval {
		if err := e.evaluate(t.Context(), begin.Add(at)); err != nil {
			t.Fatalf("at %v: %v", at, err)
		}
	}
	for _, q := range u.Queries {
		got, err := query(t.Context(), e.engine, e.archive, q.Expr, begin.Add(time.Duration(q.At)))
		if err != nil {
			t.Fatalf("at %v: %v", q.At, err)
		}
		left := map[string]float64{}
		for _, s := range got {
			left[s.Metric.String()] = s.F
		}
		for _, s := range q.Samples {
			want, err := newParser().ParseMetric(s.Labels)
			if err != nil {
				t.Fatalf("%s: %v", s.Labels, err)
			}
			if v, ok := left[want.String()]; !ok || math.Abs(v-s.Value) > 1e-6 {
				t.Errorf("at %v, %s: got %v (%t) of %s, want %v", q.At, q.Expr, v, ok, s.Labels, s.Value)
			}
			delete(left, want.String())
		}
		if len(left) > 0 {
			t.Errorf("at %v, %s: got %v too", q.At, q.Expr, left)
		}
	}
}

// load stores the input.
func (u *unitTest) load(t *testing.T, a *archive) {
	t.Helper()
	for _, in := range u.Input {
		of, values, err := newParser().ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			t.Fatalf("%s %s: %v", in.Series, in.Values, err)
		}
		for i, v := range values {
			if !v.Omitted {
				a.add(time.Unix(0, 0).Add(time.Duration(i)*time.Duration(u.Interval)), of, v.Value)
			}
		}
	}
}

// firingNow is the query by which the file says which alerts fire.
const firingNow = `group by (alertname) (ALERTS{alertstate="firing"})`

// TestEachAlertIsTested checks that for each alert the file has an instant at which it fires, and an
// earlier one of the same test at which it does not.
func TestEachAlertIsTested(t *testing.T) {
	t.Parallel()
	units := readUnits(t)
	fires, silent := map[string]bool{}, map[string]bool{}
	for i := range units.Tests {
		seen := map[string]bool{}
		for _, q := range units.Tests[i].Queries {
			if q.Expr != firingNow {
				continue
			}
			now := map[string]bool{}
			for _, s := range q.Samples {
				of, err := newParser().ParseMetric(s.Labels)
				if err != nil {
					t.Fatal(err)
				}
				now[of.Get("alertname")] = true
			}
			for name := range now {
				fires[name] = true
				if seen[name] {
					silent[name] = true
				}
			}
			for _, name := range alertNames(readRules(t, rulesFile)) {
				if !now[name] {
					seen[name] = true
				}
			}
		}
	}
	for _, name := range alertNames(readRules(t, rulesFile)) {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: fires %t, does not fire before %t", name, fires[name], silent[name])
		}
		delete(fires, name)
	}
	for name := range fires {
		t.Errorf("%s is no alert", name)
	}
}
