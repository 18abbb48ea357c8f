// Package chart has the tests of the Helm chart in the folder weir, with Helm's own packages.
// They need neither a cluster nor the helm program.
package chart

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// chartFolder is the chart.
const chartFolder = "weir"

// loadChart reads the chart from its folder.
func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart with values, as YAML, and returns the text of each file with objects,
// and the notes. A release named weir is installed in the namespace limits.
func render(t *testing.T, release, values string) (
	files map[string]string, notes string, err error,
) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	c := loadChart(t)
	options := chartutil.ReleaseOptions{
		Name: release, Namespace: "limits", Revision: 1, IsInstall: true,
	}
	all, err := chartutil.ToRenderValues(c, given, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err = engine.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	for name, text := range files {
		switch {
		case path.Base(name) == "NOTES.txt":
			notes = text
			delete(files, name)
		case strings.TrimSpace(text) == "", strings.HasSuffix(name, ".tpl"):
			delete(files, name)
		}
	}
	return files, notes, nil
}

// mustRender is render for values that are right.
func mustRender(t *testing.T, values string) *objects {
	t.Helper()
	files, notes, err := render(t, "weir", values)
	if err != nil {
		t.Fatal(err)
	}
	found := &objects{notes: notes, texts: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		found.add(t, name, files[name])
	}
	return found
}

// kindOf returns the kind of an object.
func kindOf(t *testing.T, name, text string) string {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return head.APIVersion + " " + head.Kind
}

// jsonOf returns a value as JSON.
func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
