package declared

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/clip"
	"github.com/weir-limiter/weir/internal/metadata"
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

// sayable returns a configuration without what a limits file cannot say, which another program may
// have stored: parents that are not declared or in a cycle, and names and metadata beyond the
// bounds.
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
		texts := sayableTexts(name, &e)
		notes, out.Entities[name] = append(notes, texts...), e
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

// sayableTexts removes a name and metadata that a limits file cannot have from an entity.
func sayableTexts(name string, e *weir.EntityDefinition) []httpapi.LimitsNote {
	var notes []httpapi.LimitsNote
	note := func(attribute, reason string) {
		notes = append(notes, httpapi.LimitsNote{
			Path: "entities." + name, Attribute: attribute, Reason: reason,
		})
	}
	if reason := metadata.CheckName(e.Name); reason != "" {
		note("name", reason)
		e.Name = ""
	}
	if _, path, reason := metadata.Normalize(e.Metadata); reason != "" {
		note("metadata"+clip.Text(path), reason)
		e.Metadata = nil
	}
	return notes
}
