package apijson

import (
	"errors"

	"github.com/weir-limiter/weir"
)

// System is the answer to GET /v1/admin/system.
type System struct {
	OnUnavailable weir.Policy      `json:"on_unavailable"`
	Limits        map[string]Limit `json:"limits"`
}

// Policy is put to /v1/admin/system/on_unavailable, and answered.
type Policy struct {
	OnUnavailable weir.Policy `json:"on_unavailable"`
	Note          string      `json:"note,omitempty"`
}

// ReadPolicy reads the body of a PUT of the policy.
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

// LimitSet is the limits of one place. It is put and answered.
type LimitSet struct {
	Limits map[string]Limit `json:"limits"`
	Note   string           `json:"note,omitempty"`
}

// ReadLimitSet reads the body of a PUT of limits. An empty object removes them.
func ReadLimitSet(text []byte) (limits []weir.Limit, err error) {
	err = readMember(text, "limits", func(d *reader, v *value) { limits = d.limitSet(v) })
	return limits, err
}

// Entity is an entity. Parent and cascade are put; the answer has the limits by resource too.
type Entity struct {
	Entity  string                      `json:"entity,omitempty"`
	Parent  string                      `json:"parent,omitempty"`
	Cascade bool                        `json:"cascade,omitempty"`
	Limits  map[string]map[string]Limit `json:"limits,omitempty"`
	Note    string                      `json:"note,omitempty"`
}

// ReadEntity reads the body of a PUT of an entity.
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

// EntityList is a page of entities. Next is where the next page begins; it is empty on the last
// one.
type EntityList struct {
	Entities []string `json:"entities"`
	Next     string   `json:"next,omitempty"`
}

// ReadEntities reads an [EntityList].
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
