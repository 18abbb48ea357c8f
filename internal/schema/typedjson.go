package schema

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TypedJSON returns an item in the form in which DynamoDB's own tools write JSON, with the type
// of each value: {"name": {"S": "acme"}}. The result can always be marshalled. A value of an
// unknown type becomes null.
func TypedJSON(item Item) map[string]any {
	out := make(map[string]any, len(item))
	for name, value := range item {
		out[name] = typedValue(value)
	}
	return out
}

func typedValue(value types.AttributeValue) any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value} // in base64
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": TypedJSON(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			list[i] = typedValue(element)
		}
		return map[string]any{"L": list}
	}
	return nil
}

// ParseTypedJSON decodes what [TypedJSON] returns, marshalled.
func ParseTypedJSON(data []byte) (Item, error) {
	return parseTyped(data, 1)
}

func parseTyped(data []byte, depth int) (Item, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, err
	}
	item := make(Item, len(values))
	for name, value := range values {
		var err error
		if item[name], err = parseTypedValue(value, depth); err != nil {
			return nil, fmt.Errorf("%.64q: %w", name, err)
		}
	}
	return item, nil
}

// typed is a value with its type.
//
//nolint:tagliatelle // DynamoDB's names.
type typed struct {
	S    *string            `json:"S"`
	N    *string            `json:"N"`
	B    *string            `json:"B"`
	BOOL *bool              `json:"BOOL"`
	NULL *bool              `json:"NULL"`
	SS   *[]string          `json:"SS"`
	NS   *[]string          `json:"NS"`
	BS   *[]string          `json:"BS"`
	M    json.RawMessage    `json:"M"`
	L    *[]json.RawMessage `json:"L"`
}

func parseTypedValue(data []byte, depth int) (types.AttributeValue, error) {
	var v typed
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	switch {
	case v.S != nil:
		return String(*v.S), nil
	case v.N != nil:
		return &types.AttributeValueMemberN{Value: *v.N}, nil
	case v.B != nil:
		b, err := base64.StdEncoding.DecodeString(*v.B)
		return &types.AttributeValueMemberB{Value: b}, err
	case v.BOOL != nil:
		return Bool(*v.BOOL), nil
	case v.NULL != nil:
		return &types.AttributeValueMemberNULL{Value: *v.NULL}, nil
	case v.SS != nil:
		return &types.AttributeValueMemberSS{Value: *v.SS}, nil
	case v.NS != nil:
		return &types.AttributeValueMemberNS{Value: *v.NS}, nil
	case v.BS != nil:
		return parseBinarySet(*v.BS)
	case v.M != nil:
		m, err := parseTyped(v.M, depth+1)
		return &types.AttributeValueMemberM{Value: m}, err
	case v.L != nil:
		return parseTypedList(*v.L, depth+1)
	}
	return nil, fmt.Errorf("%.64q is not a value with a type", data)
}

func parseBinarySet(texts []string) (types.AttributeValue, error) {
	set := make([][]byte, len(texts))
	for i, s := range texts {
		var err error
		if set[i], err = base64.StdEncoding.DecodeString(s); err != nil {
			return nil, err
		}
	}
	return &types.AttributeValueMemberBS{Value: set}, nil
}

func parseTypedList(values []json.RawMessage, depth int) (types.AttributeValue, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	list := make([]types.AttributeValue, len(values))
	for i, value := range values {
		var err error
		if list[i], err = parseTypedValue(value, depth); err != nil {
			return nil, err
		}
	}
	return &types.AttributeValueMemberL{Value: list}, nil
}

// IsPlain reports whether JSON has every value of what [DecodeMap] returned: there are no binary
// values and no sets.
func IsPlain(values map[string]any) bool { return isPlain(values) }

func isPlain(value any) bool {
	switch v := value.(type) {
	case types.AttributeValue:
		return false
	case map[string]any:
		for _, element := range v {
			if !isPlain(element) {
				return false
			}
		}
	case []any:
		for _, element := range v {
			if !isPlain(element) {
				return false
			}
		}
	}
	return true
}

// PlainMap returns a map that was decoded from JSON with [json.Number]s as [DecodeMap] returns
// it: a whole number becomes an int64 if it fits.
func PlainMap(values map[string]any) map[string]any {
	if values == nil {
		return nil
	}
	m := make(map[string]any, len(values))
	for name, value := range values {
		m[name] = plainValue(value)
	}
	return m
}

func plainValue(value any) any {
	switch v := value.(type) {
	case json.Number:
		return decodeAny(&types.AttributeValueMemberN{Value: string(v)})
	case map[string]any:
		return PlainMap(v)
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plainValue(element)
		}
		return list
	}
	return value
}
