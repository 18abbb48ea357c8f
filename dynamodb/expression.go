package dynamodb

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// expression builds the expressions of one write. Names and values go in by position, since a
// limit's name may contain what DynamoDB's grammar does not allow.
type expression struct {
	names            map[string]string
	alias            map[string]string
	values           map[string]types.AttributeValue
	set, add, remove []string
	conditions       []string
}

// name is the alias of an attribute.
func (e *expression) name(attribute string) string {
	if a, ok := e.alias[attribute]; ok {
		return a
	}
	if e.names == nil {
		e.names, e.alias = make(map[string]string), make(map[string]string)
	}
	a := "#n" + strconv.Itoa(len(e.names))
	e.names[a], e.alias[attribute] = attribute, a
	return a
}

// value is the alias of a value.
func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = make(map[string]types.AttributeValue)
	}
	a := ":v" + strconv.Itoa(len(e.values))
	e.values[a] = v
	return a
}

// number is the alias of a number.
func (e *expression) number(n int64) string {
	return e.value(&types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)})
}

// text is the alias of a string.
func (e *expression) text(s string) string {
	return e.value(&types.AttributeValueMemberS{Value: s})
}

// setNumber sets an attribute.
func (e *expression) setNumber(attribute string, n int64) {
	e.set = append(e.set, e.name(attribute)+" = "+e.number(n))
}

// addNumber adds to an attribute; nothing, if there is nothing to add.
func (e *expression) addNumber(attribute string, n int64) {
	if n != 0 {
		e.add = append(e.add, e.name(attribute)+" "+e.number(n))
	}
}

// removeAll removes attributes.
func (e *expression) removeAll(attributes ...string) {
	for _, a := range attributes {
		e.remove = append(e.remove, e.name(a))
	}
}

// require adds a condition on an attribute's number.
func (e *expression) require(attribute, comparison string, n int64) {
	e.conditions = append(e.conditions, e.name(attribute)+" "+comparison+" "+e.number(n))
}

// between requires a number to lie between two, both included.
func (e *expression) between(attribute string, low, high int64) {
	e.conditions = append(e.conditions,
		e.name(attribute)+" BETWEEN "+e.number(low)+" AND "+e.number(high))
}

// exists requires an attribute to be there.
func (e *expression) exists(attribute string) {
	e.conditions = append(e.conditions, "attribute_exists("+e.name(attribute)+")")
}

// absent requires an attribute not to be there.
func (e *expression) absent(attribute string) {
	e.conditions = append(e.conditions, "attribute_not_exists("+e.name(attribute)+")")
}

// absentOr requires an attribute not to be there, or its number to compare.
func (e *expression) absentOr(attribute, comparison string, n int64) {
	a := e.name(attribute)
	e.conditions = append(e.conditions,
		"(attribute_not_exists("+a+") OR "+a+" "+comparison+" "+e.number(n)+")")
}

// requireSame requires an attribute to have the number that was read, or still not to be there.
func (e *expression) requireSame(attribute string, read *int64) {
	if read == nil {
		e.absent(attribute)
		return
	}
	e.require(attribute, "=", *read)
}

// setText sets an attribute to a text.
func (e *expression) setText(attribute, s string) {
	e.set = append(e.set, e.name(attribute)+" = "+e.text(s))
}

// equalText requires an attribute to be a text; not to be there where that is empty.
func (e *expression) equalText(attribute, s string) {
	if s == "" {
		e.absent(attribute)
		return
	}
	e.conditions = append(e.conditions, e.name(attribute)+" = "+e.text(s))
}

// differentText requires an attribute not to be a text.
func (e *expression) differentText(attribute, s string) {
	a := e.name(attribute)
	e.conditions = append(e.conditions, "(attribute_not_exists("+a+") OR "+a+" <> "+e.text(s)+")")
}

// setIfAbsent sets an attribute that is not there yet.
func (e *expression) setIfAbsent(attribute string, v types.AttributeValue) {
	a := e.name(attribute)
	e.set = append(e.set, a+" = if_not_exists("+a+", "+e.value(v)+")")
}

// requireUnchanged requires an attribute to be as it was read.
func (e *expression) requireUnchanged(read schema.Item, attribute string) {
	if v, ok := read[attribute]; ok {
		e.conditions = append(e.conditions, e.name(attribute)+" = "+e.value(v))
		return
	}
	e.absent(attribute)
}

// update is the update expression; nil if there is nothing to do, which is a write as well.
func (e *expression) update() *string {
	var b strings.Builder
	for _, clause := range []struct {
		word  string
		parts []string
	}{{"SET ", e.set}, {" ADD ", e.add}, {" REMOVE ", e.remove}} {
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

// condition is the condition expression; nil if there is none.
func (e *expression) condition() *string {
	if len(e.conditions) == 0 {
		return nil
	}
	s := strings.Join(e.conditions, " AND ")
	return &s
}
