package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// TestLint runs helm lint.
func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]any{
		"defaults": {},
		"tigerbeetle": {"store": map[string]any{
			"kind": "tigerbeetle", "tigerbeetle": map[string]any{"addresses": []any{"a:1"}},
		}},
	} {
		for _, m := range lint.All(chartFolder, values, "limits", true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m.Error())
			}
		}
	}
}

// TestLimits checks that the chart's limits are those of the example.
func TestLimits(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile(filepath.Join(chartFolder, "limits.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/tenants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(own, example) {
		t.Error("limits.yaml differs from examples/tenants.yaml")
	}
	if got := mustRender(t, "{}").limits.Data["limits.yaml"]; got != string(example) {
		t.Errorf("the ConfigMap differs: %s", got)
	}
}

// TestAlerts checks that the chart's alerts are those of the folder monitoring, which has their
// tests.
func TestAlerts(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile(filepath.Join(chartFolder, "weir.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("../monitoring/weir.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(own, tested) {
		t.Error("chart/weir/weir.rules.yaml differs: copy monitoring/weir.rules.yaml there")
	}
	var file monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(tested, &file); err != nil {
		t.Fatal(err)
	}
	rule := mustRender(t, toggles(t)["alerts"]).rule
	if len(file.Groups) == 0 || !reflect.DeepEqual(rule.Spec, file) {
		t.Errorf("the PrometheusRule differs: got %+v, want %+v", rule.Spec, file)
	}
}

// TestReadme checks that the table of values has each value and its default, and no others.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(chartFolder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| `([^|]*)` \\| [^|]*\\|$")
	rows := row.FindAllStringSubmatch(string(text), -1)
	var got []string
	for _, row := range rows {
		got = append(got, row[1]+" = "+row[2])
	}
	var want []string
	flatten(t, "", loadChart(t).Values, &want)
	slices.Sort(got)
	slices.Sort(want)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("the table lacks %s", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("the table has %s", g)
		}
	}
}

// flatten lists values, each as "path = value in JSON".
func flatten(t *testing.T, path string, values map[string]any, to *[]string) {
	t.Helper()
	for key, value := range values {
		at := strings.TrimPrefix(path+"."+key, ".")
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			flatten(t, at, inner, to)
			continue
		}
		*to = append(*to, at+" = "+jsonOf(t, value))
	}
}
