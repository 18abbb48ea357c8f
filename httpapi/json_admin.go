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

// readPolicy reads what is put to /v1/admin/system/on_unavailable.
func readPolicy(text []byte) (policy weir.Policy, err error) {
	err = readMember(text, "on_unavailable", func(d *reader, v *value) { policy = weir.Policy(d.text(v)) })
	return policy, err
}

// readMember reads an object that has exactly one member.
func readMember(text []byte, name string, take func(d *reader, v *value)) error {
	v, err := parseDocument(text)
	if err != nil {
		return err
	}
	var d reader
	var given *value
	d.fields(v, func(member string, v *value) bool {
		if member != name {
			return false
		}
		given = v
		take(&d, v)
		return true
	})
	d.require(v, name, given)
	return d.err()
}

// limitSetBody is the limits of one place: what is put, and what is answered.
type limitSetBody struct {
	Limits map[string]limitBody `json:"limits"`
	Note   string               `json:"note,omitempty"`
}

// readLimitSet reads the limits of a place; an empty object removes them.
func readLimitSet(text []byte) (limits []weir.Limit, err error) {
	err = readMember(text, "limits", func(d *reader, v *value) { limits = d.limitSet(v) })
	return limits, err
}

// entityBody is an entity: parent and cascade are put, limits only answered, by resource.
type entityBody struct {
	Entity  string                          `json:"entity,omitempty"`
	Parent  string                          `json:"parent,omitempty"`
	Cascade bool                            `json:"cascade,omitempty"`
	Limits  map[string]map[string]limitBody `json:"limits,omitempty"`
	Note    string                          `json:"note,omitempty"`
}

// readEntity reads the parent and cascade that are put to an entity.
func readEntity(text []byte) (*entityBody, error) {
	v, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	var d reader
	body := &entityBody{}
	d.fields(v, func(name string, v *value) bool {
		switch name {
		case "parent":
			body.Parent = d.text(v)
		case "cascade":
			body.Cascade = d.boolean(v)
		default:
			return false
		}
		return true
	})
	return body, d.err()
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
