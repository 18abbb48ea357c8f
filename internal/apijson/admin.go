package apijson

import (
	"errors"

	"github.com/weir-limiter/weir"
)

// System is what GET /v1/admin/system answers.
type System struct {
	OnUnavailable weir.Policy      `json:"on_unavailable"`
	Limits        map[string]Limit `json:"limits"`
}

// Policy is put to /v1/admin/system/on_unavailable.
type Policy struct {
	OnUnavailable weir.Policy `json:"on_unavailable"`
	Note          string      `json:"note,omitempty"`
}

// ReadPolicy reads what is put to /v1/admin/system/on_unavailable.
func ReadPolicy(text []byte) (policy weir.Policy, err error) {
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

// LimitSet is the limits of one place: what is put, and what is answered.
type LimitSet struct {
	Limits map[string]Limit `json:"limits"`
	Note   string           `json:"note,omitempty"`
}

// ReadLimitSet reads the limits of a place; an empty object removes them.
func ReadLimitSet(text []byte) (limits []weir.Limit, err error) {
	err = readMember(text, "limits", func(d *reader, v *value) { limits = d.limitSet(v) })
	return limits, err
}

// Entity is an entity: parent and cascade are put, limits only answered, by resource.
type Entity struct {
	Entity  string                      `json:"entity,omitempty"`
	Parent  string                      `json:"parent,omitempty"`
	Cascade bool                        `json:"cascade,omitempty"`
	Limits  map[string]map[string]Limit `json:"limits,omitempty"`
	Note    string                      `json:"note,omitempty"`
}

// ReadEntity reads the parent and cascade that are put to an entity.
func ReadEntity(text []byte) (*Entity, error) {
	v, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	var d reader
	body := &Entity{}
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

// EntityList answers the lists of entities. Next is where the next page begins, empty at the end.
type EntityList struct {
	Entities []string `json:"entities"`
	Next     string   `json:"next,omitempty"`
}

// ReadEntities reads a page of entities.
func ReadEntities(body []byte) (*weir.EntityPage, error) {
	b, err := Read[EntityList](body)
	if err == nil && b.Entities == nil {
		err = errors.New("has no entities")
	}
	if err != nil {
		return nil, err
	}
	return &weir.EntityPage{Names: b.Entities, Next: b.Next}, nil
}
