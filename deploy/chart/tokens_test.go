package chart

import (
	"bytes"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

// cluster is a cluster with a Secret, which templates can look up.
type cluster struct{ client dynamic.Interface }

// GetClientFor returns a client for a kind, which is Secret.
func (c *cluster) GetClientFor(version, kind string) (
	of dynamic.NamespaceableResourceInterface, namespaced bool, err error,
) {
	return c.client.Resource(schema.FromAPIVersionAndKind(version, kind).GroupVersion().
		WithResource("secrets")), true, nil
}

// TestTokensStay checks that an upgrade keeps the random bearer tokens that callers have, and makes
// those that are missing.
func TestTokensStay(t *testing.T) {
	t.Parallel()
	first := mustRender(t, "{}").texts[secret]
	installed := asObject(t, first)
	unstructured.RemoveNestedField(installed.Object, "data", "read")
	on := &cluster{fake.NewSimpleDynamicClient(runtime.NewScheme(), installed)}

	c := loadChart(t)
	options := chartutil.ReleaseOptions{
		Name: "weir", Namespace: "limits", Revision: 2, IsUpgrade: true,
	}
	values, err := chartutil.ToRenderValues(c, nil, options, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.RenderWithClientProvider(c, values, on)
	if err != nil {
		t.Fatal(err)
	}
	before, after := &objects{texts: map[string]string{}}, &objects{texts: map[string]string{}}
	before.add(t, "installed", first)
	after.add(t, "upgraded", files["weir/templates/tokens.yaml"])
	for key, want := range map[string]bool{
		"call": true, "admin": true, "read": false, "tokens.yaml": false,
	} {
		if got := bytes.Equal(before.tokens.Data[key], after.tokens.Data[key]); got != want {
			t.Errorf("%s: stays %t, want %t", key, got, want)
		}
	}
	again := &objects{texts: map[string]string{}}
	upgraded := asObject(t, files["weir/templates/tokens.yaml"])
	on.client = fake.NewSimpleDynamicClient(runtime.NewScheme(), upgraded)
	if files, err = engine.RenderWithClientProvider(c, values, on); err != nil {
		t.Fatal(err)
	}
	again.add(t, "upgraded again", files["weir/templates/tokens.yaml"])
	if again.texts[secret] != after.texts[secret] {
		t.Error("an upgrade has changed bearer tokens")
	}
}

// asObject returns YAML as an object of a cluster.
func asObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
