package schema

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// String is a string as DynamoDB has it.
func String(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number is a number as DynamoDB has it.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Bool is a truth value as DynamoDB has it.
func Bool(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// Null is nothing as DynamoDB has it.
func Null() types.AttributeValue { return &types.AttributeValueMemberNULL{Value: true} }

// StringOrNull is a string, or nothing if it is empty.
func StringOrNull(s string) types.AttributeValue {
	if s == "" {
		return Null()
	}
	return String(s)
}

// Int64 reads a whole number. A value that is none, or is beyond an int64, is an error without the
// attribute's name.
func Int64(value types.AttributeValue) (int64, error) {
	v, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, errNoNumber
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return n, errBeyond // as near as there is
	}
	if err != nil {
		return 0, errNotWhole
	}
	return n, nil
}

var (
	errNoNumber = errors.New("is no number")
	errNotWhole = errors.New("is no whole number")
	errBeyond   = errors.New("is beyond 64 bits")
)

// malformed names an attribute of an item that cannot be read.
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

// maxShown bounds a value in a message.
const maxShown = 64

// show returns a value for a message: short, and quoted where it is text.
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
