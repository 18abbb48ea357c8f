package httphandler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// apiDocument has the parts of an OpenAPI document that the tests check. Names match in any case.
type apiDocument struct {
	OpenAPI    string
	Paths      map[string]apiPath
	Components struct {
		Schemas    map[string]*apiSchema
		Parameters map[string]*apiParameter
		Responses  map[string]*apiResponse
	}
}

type apiPath struct {
	Parameters             []*apiParameter
	Get, Put, Post, Delete *apiOperation
}

type apiOperation struct {
	OperationID string
	Tags        []string
	Summary     string
	Security    *[]map[string][]string
	Parameters  []*apiParameter
	RequestBody struct {
		Content map[string]apiContent
	}
	Responses map[string]*apiResponse

	method, path string
}

type apiParameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Example  any
}

type apiResponse struct {
	Ref     string `json:"$ref"`
	Content map[string]apiContent
}

type apiContent struct {
	Examples map[string]struct{ Value json.RawMessage }
}

type apiSchema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Required             []string
	Properties           map[string]*apiSchema
	AdditionalProperties json.RawMessage
	AnyOf, OneOf         []*apiSchema
	Const                any
}

// readDocument parses a document, which must be well-formed.
func readDocument(t *testing.T, text []byte) *apiDocument {
	t.Helper()
	var d apiDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// operations returns every operation of the document, with parameters resolved and with those of
// its path.
func (d *apiDocument) operations() []*apiOperation {
	var all []*apiOperation
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		p := d.Paths[path]
		methods := map[string]*apiOperation{"GET": p.Get, "PUT": p.Put, "POST": p.Post, "DELETE": p.Delete}
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			if methods[method] == nil {
				continue
			}
			o := *methods[method]
			o.method, o.path, o.Parameters = method, path, nil
			for _, q := range slices.Concat(p.Parameters, methods[method].Parameters) {
				if name, ok := strings.CutPrefix(q.Ref, "#/components/parameters/"); ok {
					q = d.Components.Parameters[name]
				}
				o.Parameters = append(o.Parameters, q)
			}
			all = append(all, &o)
		}
	}
	return all
}

// pattern returns the handler's name of the operation.
func (o *apiOperation) pattern() string {
	if o.path == "/" {
		return o.method + " /{$}"
	}
	return o.method + " " + o.path
}

// schema resolves a reference.
func (d *apiDocument) schema(s *apiSchema) *apiSchema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.schema(d.Components.Schemas[name])
	}
	return s
}

// walkTree calls visit with every member of every object in a JSON tree.
func walkTree(tree any, visit func(key string, v any)) {
	switch tree := tree.(type) {
	case map[string]any:
		for key, v := range tree {
			visit(key, v)
			walkTree(v, visit)
		}
	case []any:
		for _, v := range tree {
			walkTree(v, visit)
		}
	}
}

// formFaults returns the faults in a document that do not depend on the handler: dangling
// references, and components and names that are unused or used twice.
func formFaults(t *testing.T, text []byte) []string {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return []string{err.Error()}
	}
	var faults []string
	used := map[string]bool{}
	walkTree(tree, func(key string, v any) {
		if s, ok := v.(string); ok && key == "$ref" {
			used[s] = true
		}
	})
	for kind, named := range tree["components"].(map[string]any) {
		for name := range named.(map[string]any) {
			ref := "#/components/" + kind + "/" + name
			if !used[ref] && kind != "securitySchemes" {
				faults = append(faults, ref+" is not used")
			}
			delete(used, ref)
		}
	}
	for ref := range used {
		faults = append(faults, ref+" is not defined")
	}
	if len(faults) > 0 {
		return faults
	}
	d := readDocument(t, text)
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		faults = append(faults, "openapi is "+d.OpenAPI+", want 3.1")
	}
	ids := map[string]bool{}
	for _, o := range d.operations() {
		if o.OperationID == "" || o.Summary == "" || ids[o.OperationID] {
			faults = append(faults, fmt.Sprintf("%s: operation %q, summary %q: empty or used twice",
				o.pattern(), o.OperationID, o.Summary))
		}
		ids[o.OperationID] = true
	}
	return faults
}

// routeFaults compares the operations of the document with the routes of the handler, in both
// directions, with their roles and parameters.
func routeFaults(d *apiDocument, routes []route) []string {
	var faults []string
	documented := map[string]*apiOperation{}
	for _, o := range d.operations() {
		documented[o.pattern()] = o
	}
	for _, r := range routes {
		o := documented[r.pattern()]
		if o == nil {
			faults = append(faults, r.pattern()+" is not in the document")
			continue
		}
		delete(documented, r.pattern())
		tag := map[Role]string{
			RoleNone: "server", RoleRead: "questions", RoleCall: "leases", RoleAdmin: "administration",
		}[r.role]
		if !slices.Equal(o.Tags, []string{tag}) {
			faults = append(faults, fmt.Sprintf("%s: tags are %q, want %s", r.pattern(), o.Tags, tag))
		}
		if open := o.Security != nil && len(*o.Security) == 0; open != (r.role == RoleNone) {
			faults = append(faults, fmt.Sprintf("%s: open to all is %v", r.pattern(), open))
		}
		var query []string
		headers := 0
		for _, p := range o.Parameters {
			switch {
			case p.In == "query":
				query = append(query, p.Name)
			case p.In == "header":
				headers++
			case !strings.Contains(o.path, "{"+p.Name+"}"):
				faults = append(faults, r.pattern()+": no "+p.Name+" in the path")
			}
		}
		if want := slices.Sorted(slices.Values(r.query)); !slices.Equal(slices.Sorted(slices.Values(query)), want) {
			faults = append(faults, fmt.Sprintf("%s: parameters are %q, want %q", r.pattern(), query, want))
		}
		if strings.Count(o.path, "{") != len(o.Parameters)-len(query)-headers {
			faults = append(faults, r.pattern()+": a part of the path has no parameter")
		}
	}
	for pattern := range documented {
		faults = append(faults, pattern+" is in the document alone")
	}
	return faults
}
