package httpapi

import (
	"errors"

	"github.com/weir-limiter/weir"
)

// systemBody is what GET /v1/admin/system answers.
type systemBody struct {
	OnUnavailable weir.Policy          `json:"on_unavailable"`
	Limits        map[string]limitBody `json:"limits"`
}

// policyBody is put to /v1/admin/system/on_unavailable.
type policyBody struct {
	OnUnavailable weir.Policy `json:"on_unavailable"`
	Note          string      `json:"note,omitempty"`
}

func (h *Handler) readPolicy(c *incoming) (weir.Policy, error) {
	v, err := parseDocument(c.in)
	if err != nil {
		return "", err
	}
	var d reader
	var given *value
	var policy weir.Policy
	d.fields(v, func(name string, v *value) bool {
		if name != "on_unavailable" {
			return false
		}
		given, policy = v, weir.Policy(d.text(v))
		return true
	})
	if given == nil && v.what() == "an object" {
		d.missing("on_unavailable")
	}
	return policy, d.err()
}

// limitSetBody is the limits of one place: what is put, and what is answered.
type limitSetBody struct {
	Limits map[string]limitBody `json:"limits"`
	Note   string               `json:"note,omitempty"`
}

// readLimitSet reads the limits of a place; an empty object removes them.
func readLimitSet(v *value) ([]weir.Limit, error) {
	var d reader
	var given *value
	var limits []weir.Limit
	d.fields(v, func(name string, v *value) bool {
		if name != "limits" {
			return false
		}
		given, limits = v, d.limitSet(v)
		return true
	})
	if given == nil && v.what() == "an object" {
		d.missing("limits")
	}
	return limits, d.err()
}

// entityBody is an entity: parent and cascade are put, limits only answered, by resource.
type entityBody struct {
	Entity  string                          `json:"entity,omitempty"`
	Parent  string                          `json:"parent,omitempty"`
	Cascade bool                            `json:"cascade,omitempty"`
	Limits  map[string]map[string]limitBody `json:"limits,omitempty"`
	Note    string                          `json:"note,omitempty"`
}

// entitiesBody answers the lists of entities. Next is where the next page begins, empty at the end.
type entitiesBody struct {
	Entities []string `json:"entities"`
	Next     string   `json:"next,omitempty"`
}

func readEntities(body []byte) (*weir.EntityPage, error) {
	b, err := read[entitiesBody](body)
	if err == nil && b.Entities == nil {
		err = errors.New("has no entities")
	}
	if err != nil {
		return nil, err
	}
	return &weir.EntityPage{Names: b.Entities, Next: b.Next}, nil
}
