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

// LimitSet is the limits of one place. It is put and answered.
type LimitSet struct {
	Limits map[string]Limit `json:"limits"`
	Note   string           `json:"note,omitempty"`
}

// Entity is an entity. Parent and cascade are put; the answer has the limits by resource too.
type Entity struct {
	Entity  string                      `json:"entity,omitempty"`
	Parent  string                      `json:"parent,omitempty"`
	Cascade bool                        `json:"cascade,omitempty"`
	Limits  map[string]map[string]Limit `json:"limits,omitempty"`
	Note    string                      `json:"note,omitempty"`
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
