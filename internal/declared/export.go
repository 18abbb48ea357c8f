package declared

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/manifest"
)

// ExportLimits implements [httpapi.LimitsAdmin].
func (l *Limits) ExportLimits(ctx context.Context) (*httpapi.LimitsExport, error) {
	t, err := l.target()
	if err != nil {
		return nil, err
	}
	stored, err := t.ReadDefinitions(ctx, nil)
	if err != nil {
		return nil, asError(err)
	}
	out := &httpapi.LimitsExport{Foreign: []httpapi.LimitsNote{}}
	for i := range stored.Foreign {
		out.Foreign = append(out.Foreign, noteOf(&stored.Foreign[i]))
	}
	d, notes := sayable(stored.Definitions)
	out.Foreign = append(out.Foreign, notes...)
	namespace := t.DeclaredNamespace()
	if namespace == "" {
		namespace = manifest.DefaultNamespace
	}
	text, err := manifest.Format(namespace, d)
	if err != nil {
		return nil, err
	}
	out.Text = string(text)
	return out, nil
}

// sayable returns a configuration without the parents that a limits file cannot say: those that
// are not declared and those in a cycle, which another program may have stored.
func sayable(d *weir.Definitions) (*weir.Definitions, []httpapi.LimitsNote) {
	var notes []httpapi.LimitsNote
	out := *d
	out.Entities = maps.Clone(d.Entities)
	drop := func(name, reason string) {
		e := out.Entities[name]
		notes = append(notes, httpapi.LimitsNote{
			Path: "entities." + name, Attribute: "parent",
			Reason: "is " + e.Parent + ", " + reason,
		})
		e.Parent, e.Cascade = "", false
		out.Entities[name] = e
	}
	for _, name := range slices.Sorted(maps.Keys(out.Entities)) {
		e := out.Entities[name]
		if _, ok := out.Entities[e.Parent]; e.Parent != "" && !ok {
			drop(name, "which is not declared")
			continue
		}
		seen := map[string]bool{}
		for at := name; at != "" && !seen[at]; at = out.Entities[at].Parent {
			seen[at] = true
			if out.Entities[at].Parent == name {
				drop(name, "which leads back to it")
				break
			}
		}
	}
	return &out, notes
}
