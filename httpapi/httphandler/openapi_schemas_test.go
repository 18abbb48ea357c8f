package httphandler

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/apijson"
)

// wireSchema names the schemas that describe a struct of the wire.
type wireSchema struct {
	body any
	// schemas names the schemas that together have the members of the struct.
	schemas string
	// use is the direction. Requests refuse unknown members, and answers always have the members
	// that are never omitted.
	use string
}

const (
	isRequest = "request"
	isAnswer  = "answer"
	isBoth    = "both"
)

func wireSchemas() []wireSchema {
	return []wireSchema{
		{apijson.ReserveRequest{}, "ReserveOne ReserveCharges ReserveFlat", isRequest},
		{apijson.Charge{}, "Charge", isRequest},
		{apijson.Requirement{}, "Requirement", isRequest},
		{apijson.ActualAmount{}, "ActualAmount", isRequest},
		{apijson.Limit{}, "BucketLimit WindowLimit ConcurrencyLimit BudgetLimit", isRequest},
		{apijson.Lease{}, "Lease", isAnswer},
		{apijson.LimitStatus{}, "LimitStatus", isAnswer},
		{apijson.AdjustRequest{}, "AdjustRequest", isRequest},
		{apijson.CompleteRequest{}, "CompleteRequest", isRequest},
		{apijson.LeaseRequest{}, "LeaseRequest", isRequest},
		{apijson.Receipt{}, "Receipt", isAnswer},
		{apijson.LimitsStatus{}, "LimitsStatus", isAnswer},
		{apijson.Explanation{}, "Explanation", isAnswer},
		{apijson.LevelLimits{}, "LevelLimits", isAnswer},
		{apijson.Problem{}, "Problem Denial", isAnswer},
		{apijson.Mistake{}, "Mistake", isAnswer},
		{apijson.Subject{}, "Subject", isAnswer},
		{apijson.System{}, "System", isAnswer},
		{apijson.LimitSet{}, "LimitSet", isAnswer},
		{apijson.Entity{}, "Entity", isAnswer},
		{apijson.EntityList{}, "EntityList", isAnswer},
		{apijson.Policy{}, "Policy", isAnswer},
		{apijson.Retention{}, "Retention", isAnswer},
		{apijson.Health{}, "Health", isAnswer},
		{apijson.UsageList{}, "UsageList", isAnswer},
		{apijson.Usage{}, "Usage", isAnswer},
		{apijson.UsageGap{}, "UsageGap", isAnswer},
		{apijson.AuditList{}, "AuditList", isAnswer},
		{apijson.AuditEvent{}, "AuditEvent", isAnswer},
		{httpapi.ActivityReport{}, "Activity", isAnswer},
		{httpapi.ActivityErrors{}, "ActivityErrors", isAnswer},
		{httpapi.ActivityLimit{}, "ActivityLimit", isAnswer},
		{httpapi.ActivitySeconds{}, "ActivitySeconds", isAnswer},
		{httpapi.ActivityDenial{}, "ActivityDenial", isAnswer},
		{httpapi.ActivityDenied{}, "ActivityDenied", isAnswer},
		{httpapi.ActivitySubject{}, "Subject", isAnswer},
		{httpapi.ActivityExceeded{}, "ActivityExceeded", isAnswer},
		{httpapi.ActivityEntity{}, "ActivityEntity", isAnswer},
		{httpapi.LimitsFile{}, "LimitsFileRequest", isRequest},
		{httpapi.LimitsPlan{}, "LimitsPlan", isAnswer},
		{httpapi.LimitsChange{}, "LimitsChange", isAnswer},
		{httpapi.LiveEntities{}, "LiveEntities", isAnswer},
		{httpapi.LimitsBehind{}, "LimitsBehind", isAnswer},
		{httpapi.LimitsNote{}, "LimitsNote", isAnswer},
		{httpapi.LimitsRefusal{}, "LimitsRefusal", isAnswer},
		{httpapi.LimitsExport{}, "LimitsExport", isAnswer},
		{apijson.Namespace{}, "Namespace", isAnswer},
		{apijson.NamespaceList{}, "NamespaceList", isAnswer},
		{apijson.PurgeRequest{}, "PurgeRequest", isRequest},
		{apijson.Purged{}, "Purged", isAnswer},
		// A body that is put is a part of the answer.
		{struct {
			Limits map[string]apijson.Limit `json:"limits"`
		}{}, "LimitSetRequest", isRequest},
		{apijson.EntityChange{}, "EntityRequest", isRequest},
		{apijson.ResourceList{}, "ResourceList", isAnswer},
		{struct {
			OnUnavailable string `json:"on_unavailable"`
		}{}, "PolicyRequest", isRequest},
		{struct {
			UsageDays     *int64 `json:"usage_days,omitempty"`
			AuditDays     *int64 `json:"audit_days,omitempty"`
			TTLMultiplier *int64 `json:"ttl_multiplier,omitempty"`
		}{}, "RetentionRequest", isRequest},
	}
}

// schemaFaults compares the schemas of the document with the structs: names, types, and required
// members.
func schemaFaults(d *apiDocument) []string {
	var faults []string
	described := map[string]bool{}
	for _, w := range wireSchemas() {
		for name := range strings.FieldsSeq(w.schemas) {
			described[name] = true
		}
		faults = append(faults, w.faults(d)...)
	}
	for name, s := range d.Components.Schemas {
		if len(s.Properties) > 0 && !described[name] {
			faults = append(faults, name+" describes nothing")
		}
	}
	return faults
}

func (w *wireSchema) faults(d *apiDocument) []string {
	var faults []string
	bad := func(format string, args ...any) {
		faults = append(faults, w.schemas+": "+fmt.Sprintf(format, args...))
	}
	members := wireMembers(reflect.TypeOf(w.body))
	missing := maps.Clone(members)
	required := map[string]int{}
	names := strings.Fields(w.schemas)
	for _, name := range names {
		s := d.Components.Schemas[name]
		if s == nil {
			bad("%s is not there", name)
			continue
		}
		if closed := string(s.AdditionalProperties) == "false"; closed != (w.use == isRequest) {
			bad("%s: closed to other members is %v", name, closed)
		}
		for property, p := range s.Properties {
			m, ok := members[property]
			if !ok {
				bad("%s.%s is not on the wire", name, property)
				continue
			}
			delete(missing, property)
			if got := d.typeOf(p); got != "" && got != m.jsonType {
				bad("%s.%s is %s, want %s", name, property, got, m.jsonType)
			}
		}
		for _, property := range s.Required {
			required[property]++
			if s.Properties[property] == nil {
				bad("%s requires %s, which it has not", name, property)
			}
		}
	}
	for _, property := range slices.Sorted(maps.Keys(missing)) {
		bad("%s is not described", property)
	}
	for property, m := range members {
		always := required[property] == len(names)
		if always != m.always && (w.use == isAnswer || m.always && len(names) == 1 && !m.mayMiss) {
			bad("%s: always there is %v, want %v", property, always, m.always)
		}
	}
	return faults
}

// wireMember is a field of a struct on the wire.
type wireMember struct {
	jsonType string
	always   bool // never omitted
	mayMiss  bool // a request may omit it although the client never does
}

func wireMembers(t reflect.Type) map[string]wireMember {
	members := map[string]wireMember{}
	for field := range t.Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		members[name] = wireMember{
			jsonType: jsonType(field.Type),
			// A put of an entity omits its name, but the answer has it.
			always: option != "omitempty" && option != "omitzero" ||
				name == "entity" && t == reflect.TypeFor[apijson.Entity](),
			mayMiss: name == "costs", // a charge without costs takes slots
		}
	}
	return members
}

// jsonType returns the JSON type of a Go type, or "" if it has several.
func jsonType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return ""
	case t == reflect.TypeFor[json.Number]():
		return "number"
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int64:
		return "integer int64"
	case reflect.Int:
		return "integer"
	case reflect.Slice:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	default:
		return t.String()
	}
}

// typeOf returns the type that a schema accepts, or "" if it accepts several.
func (d *apiDocument) typeOf(s *apiSchema) string {
	s = d.schema(s)
	switch c := s.Const.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "integer"
	case nil:
		if s.Type == "integer" && s.Format == "int64" {
			return "integer int64"
		}
		if s.Type != "" {
			return s.Type
		}
	default:
		return fmt.Sprintf("%T", c)
	}
	found := ""
	for i, one := range slices.Concat(s.AnyOf, s.OneOf) {
		got := d.typeOf(one)
		if i > 0 && got != found {
			return ""
		}
		found = got
	}
	return found
}
