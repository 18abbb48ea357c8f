package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	_ "sigs.k8s.io/kubectl-validate/pkg/utils" // Its module has the schemas of Kubernetes as files.
)

// kubernetesVersions are the oldest release that the chart allows, and the newest whose schemas
// the module kubectl-validate has.
var kubernetesVersions = []string{"1.27", "1.30"}

// TestKubernetesSchemas checks every object against the OpenAPI schema that the API servers of
// some releases publish: required fields, types and values. Fields that they do not know are
// found by reading the objects into their types.
func TestKubernetesSchemas(t *testing.T) {
	t.Parallel()
	for _, version := range kubernetesVersions {
		schemas := newSchemas(t, version)
		for name, values := range toggles(t) {
			for kind, text := range mustRender(t, values).texts {
				if kind == monitor || kind == alerts {
					continue // They are not of Kubernetes itself.
				}
				if err := schemas.check(t, kind, text); err != nil {
					t.Errorf("%s, %s: %v", version, name, err)
				}
			}
		}
		for wrong, want := range map[string]string{
			"{spec: {selector: {}}}":         "missing property 'template'",
			"{spec: {replicas: two}}":        "got string, want integer",
			"{spec: {template: {spec: {}}}}": "missing property 'containers'",
		} {
			err := schemas.check(t, "apps/v1 Deployment", wrong)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", wrong, err, want)
			}
		}
	}
}

// schemas are those of one release, as they are needed.
type schemas struct {
	dir  string
	made map[string]*jsonschema.Schema // by kind
}

func newSchemas(t *testing.T, version string) *schemas {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/kubectl-validate")
	cmd.Stderr = &said
	module, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	dir := filepath.Join(strings.TrimSpace(string(module)), "pkg/openapiclient/builtins", version)
	return &schemas{dir: dir, made: map[string]*jsonschema.Schema{}}
}

// check checks an object, which is YAML.
func (s *schemas) check(t *testing.T, kind, text string) error {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if s.made[kind] == nil {
		s.made[kind] = s.make(t, kind)
	}
	return s.made[kind].Validate(object)
}

// make finds the schema of a kind in the document of its API version.
func (s *schemas) make(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	version, name, _ := strings.Cut(kind, " ")
	folder := "apis"
	if !strings.Contains(version, "/") {
		folder = "api"
	}
	data, err := os.ReadFile(filepath.Join(s.dir, folder, filepath.FromSlash(version)) + ".json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	group, number, ok := strings.Cut(version, "/")
	if !ok {
		group, number = "core", version
	}
	group, _, _ = strings.Cut(group, ".")
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kubernetes.json", document); err != nil {
		t.Fatal(err)
	}
	name = strings.Join([]string{"io.k8s.api", group, number, name}, ".")
	schema, err := c.Compile("kubernetes.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
