package schema

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// These read one value. The reason is empty where it can be read, else it says what is wrong with
// it and goes behind the attribute's name.

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
		return "", "is no string"
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

// same reads a string that the item's key already says.
func same(value types.AttributeValue, want string) (reason string) {
	s, reason := text(value)
	if reason == "" && s != want {
		return "is not what the key says"
	}
	return reason
}

// shards reads how many shards a bucket has.
func shards(value types.AttributeValue) (n int, reason string) {
	v, reason := number(value)
	switch {
	case reason != "":
		return 1, reason
	case v < 1:
		return 1, "is not above 0"
	case v > maxShard:
		return 1, "is beyond what a bucket can have"
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
