package provision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// TestPythonTemplate compares the template with that of the Python library's stack. What both have
// must be the same kind of thing with the same name, or an update would make a second one, and what
// weir's template does not have is on the documentation's page.
func TestPythonTemplate(t *testing.T) {
	t.Parallel()
	var python parsed
	cmd := testkit.ZAE(t).Command(t.Context(), "python", "testdata/python_template.py")
	if err := json.Unmarshal([]byte(testkit.Run(t, cmd)), &python); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/stack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, cut, _ := strings.Cut(string(page), "## Compared with the Python library's stack")
	of := full()
	of.Table, of.RoleNameFormat, of.PolicyNameFormat = "", "", ""
	mine := parse(t, of)
	of.RoleNameFormat, of.PermissionBoundary, of.FunctionRole = "Team-{}", "", roleARN
	maps.Copy(mine.Parameters, parse(t, of).Parameters)
	formats := full()
	maps.Copy(mine.Outputs, parse(t, formats).Outputs)

	missing := func(id string) {
		if !strings.Contains(cut, "`"+id+"`") {
			t.Errorf("the template has no %s, and docs/stack.md does not say why", id)
		}
	}
	shared := 0
	for id, p := range python.Resources {
		r, ok := mine.Resources[id]
		if !ok {
			missing(id)
			continue
		}
		shared++
		if r.Type != p.Type {
			t.Errorf("%s is %s, and %s in the Python library's stack", id, r.Type, p.Type)
		}
		for property, value := range p.Properties {
			if !strings.HasSuffix(property, "Name") && property != "Description" ||
				id == "AggregatorFunction" && property == "Description" ||
				id == "AggregatorEventSourceMapping" {
				continue
			}
			if got := names(r.Properties[property]); !slices.Contains(names(value), got[0]) {
				t.Errorf("%s of %s is %q, and %q in the Python library's stack", property, id, got, value)
			}
		}
	}
	if shared < 15 {
		t.Errorf("only %d resources are in both templates", shared)
	}
	for id := range python.Parameters {
		if _, ok := mine.Parameters[id]; !ok {
			missing(id)
		}
	}
	for id, p := range python.Outputs {
		o, ok := mine.Outputs[id]
		if !ok {
			missing(id)
			continue
		}
		if got, want := names(export(o)), names(export(p)); !slices.Equal(got, want) {
			t.Errorf("the output %s is exported as %q, and as %q there", id, got, want)
		}
	}
}

func export(output any) any {
	o, _ := output.(map[string]any)
	e, _ := o["Export"].(map[string]any)
	return e["Name"]
}

// names returns the texts in a property: the one in Fn::Sub or Ref, or all arguments of Fn::If,
// without the signs that Fn::Sub needs and Ref does not.
func names(value any) (list []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, argument := range v {
			list = append(list, names(argument)...)
		}
	case []any:
		for _, argument := range v {
			list = append(list, names(argument)...)
		}
	default:
		list = []string{strings.NewReplacer("${", "", "}", "").Replace(fmt.Sprint(v))}
	}
	return list
}
