package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/metadata"
)

// String returns a string value.
func String(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number returns a number value.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Bool returns a boolean value.
func Bool(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// Null returns a null value.
func Null() types.AttributeValue { return &types.AttributeValueMemberNULL{Value: true} }

// IsNull reports whether a value is a null value.
func IsNull(value types.AttributeValue) bool {
	_, null := value.(*types.AttributeValueMemberNULL)
	return null
}

// StringOrNull returns a string value, or a null value if the string is empty.
func StringOrNull(s string) types.AttributeValue {
	if s == "" {
		return Null()
	}
	return String(s)
}

// Int64 decodes a whole number. The error for a value that is not one, or does not fit an int64,
// does not name the attribute.
func Int64(value types.AttributeValue) (int64, error) {
	v, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, errNoNumber
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return n, errBeyond // n is the nearest int64
	}
	if err != nil {
		return 0, errNotWhole
	}
	return n, nil
}

var (
	errNoNumber = errors.New("is not a number")
	errNotWhole = errors.New("is not a whole number")
	errBeyond   = errors.New("is beyond 64 bits")
)

// malformed returns the error for an attribute of an item.
func malformed(item Item, attribute, reason string) error {
	e := &MalformedError{Attribute: attribute, Reason: reason}
	if value, ok := item[attribute]; ok {
		e.Value = show(value)
	}
	if pk, ok := item[AttrPK].(*types.AttributeValueMemberS); ok {
		e.Key.PK = pk.Value
	}
	if sk, ok := item[AttrSK].(*types.AttributeValueMemberS); ok {
		e.Key.SK = sk.Value
	}
	return e
}

// maxShown bounds the length of a value in a message.
const maxShown = 64

// show returns a value for a message: shortened, and quoted if it is a string.
func show(value types.AttributeValue) string {
	s := ""
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		s = strconv.QuoteToASCII(v.Value)
	case *types.AttributeValueMemberN:
		s = v.Value
	case *types.AttributeValueMemberBOOL:
		s = strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberNULL:
		s = "NULL"
	default:
		s = fmt.Sprintf("of type %T", value)
	}
	if len(s) > maxShown {
		s = s[:maxShown] + "…"
	}
	return s
}

// The functions below decode one value. The reason is empty if they can. Otherwise it says what is
// wrong with the value, in words that follow the attribute's name.

func number(value types.AttributeValue) (n int64, reason string) {
	n, err := Int64(value)
	if err != nil {
		return 0, err.Error()
	}
	return n, ""
}

func text(value types.AttributeValue) (s, reason string) {
	v, ok := value.(*types.AttributeValueMemberS)
	if !ok {
		return "", "is not a string"
	}
	return v.Value, ""
}

func textOrNull(value types.AttributeValue) (s, reason string) {
	if _, ok := value.(*types.AttributeValueMemberNULL); ok {
		return "", ""
	}
	return text(value)
}

func truth(value types.AttributeValue) (b bool, reason string) {
	v, ok := value.(*types.AttributeValueMemberBOOL)
	if !ok {
		return false, "is neither true nor false"
	}
	return v.Value, ""
}

// same decodes a string that repeats a part of the item's key.
func same(value types.AttributeValue, want string) (reason string) {
	s, reason := text(value)
	if reason == "" && s != want {
		return "does not agree with the key"
	}
	return reason
}

// shards decodes a shard count.
func shards(value types.AttributeValue) (n int, reason string) {
	v, reason := number(value)
	switch {
	case reason != "":
		return 1, reason
	case v < 1:
		return 1, "is not above 0"
	case v > maxShard:
		return 1, "is more than a bucket can have"
	}
	return int(v), ""
}

func above0(value types.AttributeValue) (n int64, reason string) {
	n, reason = number(value)
	if reason == "" && n <= 0 {
		reason = "is not above 0"
	}
	return n, reason
}

func notBelow0(value types.AttributeValue) (n int64, reason string) {
	n, reason = number(value)
	if reason == "" && n < 0 {
		reason = "is below 0"
	}
	return n, reason
}

// maxDepth is the depth to which DynamoDB allows maps and lists to nest.
const maxDepth = 32

// EncodeMap encodes a map of Go values: nil, string, bool, int, int64, [json.Number],
// map[string]any, []any, and the SDK's values, which stay as they are. Any other value is an error
// that names its place.
func EncodeMap(values map[string]any) (types.AttributeValue, error) {
	return encodeMap("", values, 1)
}

func encodeMap(place string, values map[string]any, depth int) (types.AttributeValue, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: is nested deeper than %d levels", place, maxDepth)
	}
	m := make(Item, len(values))
	for name, value := range values {
		v, err := encodeAny(place+"."+name, value, depth)
		if err != nil {
			return nil, err
		}
		m[name] = v
	}
	return &types.AttributeValueMemberM{Value: m}, nil
}

func encodeAny(place string, value any, depth int) (types.AttributeValue, error) {
	switch v := value.(type) {
	case nil:
		return Null(), nil
	case string:
		return String(v), nil
	case bool:
		return Bool(v), nil
	case int:
		return Number(int64(v)), nil
	case int64:
		return Number(v), nil
	case json.Number:
		if reason := numberFault(string(v)); reason != "" {
			return nil, fmt.Errorf("%s: %.50q %s", place, string(v), reason)
		}
		return &types.AttributeValueMemberN{Value: string(v)}, nil
	case map[string]any:
		return encodeMap(place, v, depth+1)
	case []any:
		return encodeList(place, v, depth+1)
	case types.AttributeValue:
		return v, nil
	}
	return nil, fmt.Errorf("%s: a %T cannot be stored", place, value)
}

func encodeList(place string, values []any, depth int) (types.AttributeValue, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: is nested deeper than %d levels", place, maxDepth)
	}
	list := make([]types.AttributeValue, len(values))
	for i, value := range values {
		v, err := encodeAny(place+"["+strconv.Itoa(i)+"]", value, depth)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return &types.AttributeValueMemberL{Value: list}, nil
}

// DynamoDB keeps numbers of up to maxDigits digits, and from 1E-130 to 9.9E+125.
const (
	maxDigits   = 38
	minExponent = -130
	maxExponent = 125
)

// numberFault returns why a string is not a JSON number that DynamoDB can keep, or "".
func numberFault(s string) string {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') || !json.Valid([]byte(s)) || strings.TrimSpace(s) != s {
		return "is not a number"
	}
	digits, power, _ := strings.Cut(strings.TrimPrefix(metadata.NumberForm(s), "-"), "e")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if exponent += len(digits) - 1; err != nil || exponent < minExponent || exponent > maxExponent {
		return fmt.Sprintf("is a number outside 1E%d to 9.9E+%d", minExponent, maxExponent)
	}
	if len(digits) > maxDigits {
		return fmt.Sprintf("has more than %d digits", maxDigits)
	}
	return ""
}

// DecodeMap decodes a map into the Go values that [EncodeMap] accepts. A whole number becomes an
// int64 if it fits, any other number a [json.Number]. Binary values and sets stay the SDK's.
func DecodeMap(values Item) map[string]any {
	m := make(map[string]any, len(values))
	for name, value := range values {
		m[name] = decodeAny(value)
	}
	return m
}

func decodeAny(value types.AttributeValue) any {
	switch v := value.(type) {
	case *types.AttributeValueMemberNULL:
		return nil
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != v.Value {
			return json.Number(v.Value)
		}
		return n
	case *types.AttributeValueMemberM:
		return DecodeMap(v.Value)
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			list[i] = decodeAny(element)
		}
		return list
	}
	return value
}

// anyMap decodes a map of any values.
func anyMap(value types.AttributeValue) (m map[string]any, reason string) {
	v, ok := value.(*types.AttributeValueMemberM)
	if !ok {
		return nil, "is not a map"
	}
	return DecodeMap(v.Value), ""
}

// textList decodes a list of strings.
func textList(value types.AttributeValue) (list []string, reason string) {
	v, ok := value.(*types.AttributeValueMemberL)
	if !ok {
		return nil, "is not a list"
	}
	list = make([]string, len(v.Value))
	for i, element := range v.Value {
		if list[i], reason = text(element); reason != "" {
			return nil, "is not a list of strings"
		}
	}
	return list, ""
}

// textSet decodes a string set, in order.
func textSet(value types.AttributeValue) (list []string, reason string) {
	v, ok := value.(*types.AttributeValueMemberSS)
	if !ok {
		return nil, "is not a set of strings"
	}
	return slices.Sorted(slices.Values(v.Value)), ""
}

func stringList(list []string) types.AttributeValue {
	values := make([]types.AttributeValue, len(list))
	for i, s := range list {
		values[i] = String(s)
	}
	return &types.AttributeValueMemberL{Value: values}
}
