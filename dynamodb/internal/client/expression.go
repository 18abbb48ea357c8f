package client

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// Expression builds the expressions of one write. It replaces names and values with aliases,
// because the name of a limit may contain characters that DynamoDB's grammar does not allow.
type Expression struct {
	Names            map[string]string
	alias            map[string]string
	Values           map[string]types.AttributeValue
	Set, Add, Remove []string
	Conditions       []string
}

// Name returns the alias of an attribute.
func (e *Expression) Name(attribute string) string {
	if a, ok := e.alias[attribute]; ok {
		return a
	}
	if e.Names == nil {
		e.Names, e.alias = make(map[string]string), make(map[string]string)
	}
	a := "#n" + strconv.Itoa(len(e.Names))
	e.Names[a], e.alias[attribute] = attribute, a
	return a
}

// Value returns the alias of a value.
func (e *Expression) Value(v types.AttributeValue) string {
	if e.Values == nil {
		e.Values = make(map[string]types.AttributeValue)
	}
	a := ":v" + strconv.Itoa(len(e.Values))
	e.Values[a] = v
	return a
}

// Number returns the alias of a number.
func (e *Expression) Number(n int64) string {
	return e.Value(&types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)})
}

// Text returns the alias of a string.
func (e *Expression) Text(s string) string {
	return e.Value(&types.AttributeValueMemberS{Value: s})
}

// SetNumber sets an attribute to a number.
func (e *Expression) SetNumber(attribute string, n int64) {
	e.Set = append(e.Set, e.Name(attribute)+" = "+e.Number(n))
}

// AddNumber adds a number to an attribute, unless the number is 0.
func (e *Expression) AddNumber(attribute string, n int64) {
	if n != 0 {
		e.Add = append(e.Add, e.Name(attribute)+" "+e.Number(n))
	}
}

// RemoveAll removes attributes.
func (e *Expression) RemoveAll(attributes ...string) {
	for _, a := range attributes {
		e.Remove = append(e.Remove, e.Name(a))
	}
}

// Require requires a comparison of an attribute with a number to hold.
func (e *Expression) Require(attribute, comparison string, n int64) {
	e.Conditions = append(e.Conditions, e.Name(attribute)+" "+comparison+" "+e.Number(n))
}

// RequireBetween requires a number to be at least low and at most high.
func (e *Expression) RequireBetween(attribute string, low, high int64) {
	e.Conditions = append(e.Conditions,
		e.Name(attribute)+" BETWEEN "+e.Number(low)+" AND "+e.Number(high))
}

// RequireExists requires an attribute to exist.
func (e *Expression) RequireExists(attribute string) {
	e.Conditions = append(e.Conditions, "attribute_exists("+e.Name(attribute)+")")
}

// RequireAbsent requires an attribute not to exist.
func (e *Expression) RequireAbsent(attribute string) {
	e.Conditions = append(e.Conditions, "attribute_not_exists("+e.Name(attribute)+")")
}

// RequireAbsentOr requires an attribute not to exist, or its comparison with a number to hold.
func (e *Expression) RequireAbsentOr(attribute, comparison string, n int64) {
	a := e.Name(attribute)
	e.Conditions = append(e.Conditions,
		"(attribute_not_exists("+a+") OR "+a+" "+comparison+" "+e.Number(n)+")")
}

// RequireSame requires an attribute to have the number that was read, or not to exist if read is
// nil.
func (e *Expression) RequireSame(attribute string, read *int64) {
	if read == nil {
		e.RequireAbsent(attribute)
		return
	}
	e.Require(attribute, "=", *read)
}

// SetText sets an attribute to a string.
func (e *Expression) SetText(attribute, s string) {
	e.Set = append(e.Set, e.Name(attribute)+" = "+e.Text(s))
}

// RequireText requires an attribute to have a string, or not to exist if the string is empty.
func (e *Expression) RequireText(attribute, s string) {
	if s == "" {
		e.RequireAbsent(attribute)
		return
	}
	e.Conditions = append(e.Conditions, e.Name(attribute)+" = "+e.Text(s))
}

// RequireOtherText requires an attribute not to have a string.
func (e *Expression) RequireOtherText(attribute, s string) {
	a := e.Name(attribute)
	e.Conditions = append(e.Conditions, "(attribute_not_exists("+a+") OR "+a+" <> "+e.Text(s)+")")
}

// SetIfAbsent sets an attribute if it does not exist.
func (e *Expression) SetIfAbsent(attribute string, v types.AttributeValue) {
	a := e.Name(attribute)
	e.Set = append(e.Set, a+" = if_not_exists("+a+", "+e.Value(v)+")")
}

// RequireUnchanged requires an attribute to be as in the item that was read.
func (e *Expression) RequireUnchanged(read schema.Item, attribute string) {
	if v, ok := read[attribute]; ok {
		e.Conditions = append(e.Conditions, e.Name(attribute)+" = "+e.Value(v))
		return
	}
	e.RequireAbsent(attribute)
}

// Update returns the update expression; nil if it is empty. DynamoDB accepts an update without one.
func (e *Expression) Update() *string {
	var b strings.Builder
	for _, clause := range []struct {
		word  string
		parts []string
	}{{"SET ", e.Set}, {" ADD ", e.Add}, {" REMOVE ", e.Remove}} {
		if len(clause.parts) > 0 {
			b.WriteString(clause.word)
			b.WriteString(strings.Join(clause.parts, ", "))
		}
	}
	s := strings.TrimSpace(b.String())
	if s == "" {
		return nil
	}
	return &s
}

// Condition returns the condition expression; nil if there is none.
func (e *Expression) Condition() *string {
	if len(e.Conditions) == 0 {
		return nil
	}
	s := strings.Join(e.Conditions, " AND ")
	return &s
}
