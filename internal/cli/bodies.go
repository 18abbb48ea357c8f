package cli

import (
	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// The bodies below are what --output json prints of the configuration, in the fields of the wire,
// which a test holds them against. What a verb answers is httpapi's own.
type (
	limitSetBody struct {
		Limits any    `json:"limits"`
		Note   string `json:"note,omitempty"`
	}
	systemBody struct {
		OnUnavailable weir.Policy `json:"on_unavailable"`
		Limits        any         `json:"limits"`
	}
	policyBody struct {
		OnUnavailable weir.Policy `json:"on_unavailable"`
		Note          string      `json:"note,omitempty"`
	}
	entityBody struct {
		Entity  string         `json:"entity"`
		Parent  string         `json:"parent,omitempty"`
		Cascade bool           `json:"cascade,omitempty"`
		Limits  map[string]any `json:"limits,omitempty"`
		Note    string         `json:"note,omitempty"`
	}
	entitiesBody struct {
		Entities []string `json:"entities"`
		Next     string   `json:"next,omitempty"`
	}
)

func newEntityBody(name string, e *weir.EntityDefinition, note string) *entityBody {
	out := &entityBody{Entity: name, Parent: e.Parent, Cascade: e.Cascade, Note: note}
	if len(e.Limits) > 0 {
		out.Limits = make(map[string]any, len(e.Limits))
	}
	for resource, limits := range e.Limits {
		out.Limits[resource] = httpapi.Document(limits)
	}
	return out
}
