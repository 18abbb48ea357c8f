package schema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// everyType returns an item with a value of every type.
func everyType() schema.Item {
	item := schema.Item{
		"s": schema.String("é\"\n\u2028"), "empty": schema.String(""),
		"n": &types.AttributeValueMemberN{Value: "9007199254740993.5"},
		"b": &types.AttributeValueMemberB{Value: []byte{0, 255}}, "bool": schema.Bool(false),
		"null": schema.Null(), "ss": schema.StringSet("a", "b"),
		"ns": &types.AttributeValueMemberNS{Value: []string{"1", "2.5"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
		"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	}
	item["m"] = &types.AttributeValueMemberM{Value: schema.Item{"": schema.Number(1)}}
	item["list"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{
		schema.Number(1), &types.AttributeValueMemberM{Value: schema.Item{}}, item["l"],
	}}
	return item
}

// TestTypedJSON checks that an item survives as JSON, in the form of DynamoDB's tools.
func TestTypedJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(schema.TypedJSON(everyType()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"b":{"B":"AP8="}`, `"n":{"N":"9007199254740993.5"}`, `"bs":{"BS":["AQ==","Ag=="]}`,
		`"l":{"L":[]}`, `"list":{"L":[{"N":"1"},{"M":{}},{"L":[]}]}`, `"null":{"NULL":true}`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in %s", want, data)
		}
	}
	got, err := schema.ParseTypedJSON(data)
	if err != nil || !reflect.DeepEqual(got, everyType()) {
		t.Errorf("got %v, %v", got, err)
	}
	unknown := schema.TypedJSON(schema.Item{"x": nil})
	if data, err := json.Marshal(unknown); err != nil || string(data) != `{"x":null}` {
		t.Errorf("a value of an unknown type: got %s, %v", data, err)
	}
}

func TestParseTypedJSONRefuses(t *testing.T) {
	t.Parallel()
	deep := func(of, open, close string) string {
		return `{"a":` + strings.Repeat(open, 40) + of + strings.Repeat(close, 40) + `}`
	}
	for _, in := range []string{
		``, `[]`, `{"a":1}`, `{"a":{}}`, `{"a":null}`, `{"a":{"X":"1"}}`, `{"a":{"S":1}}`, `{"a":{"B":"?"}}`,
		`{"a":{"BS":["?"]}}`, `{"a":{"L":[{"M":1}]}}`, `{"a":{"L":[{}]}}`, `{"a":{"M":[]}}`,
		deep(`{"S":""}`, `{"L":[`, `]}`), deep(`{"S":""}`, `{"M":{"a":`, `}}`),
	} {
		if item, err := schema.ParseTypedJSON([]byte(in)); err == nil {
			t.Errorf("%.80s: got %v", in, item)
		}
	}
}

// TestPlainMap checks that plain JSON gives the same map as the item, and which maps JSON does not
// hold.
func TestPlainMap(t *testing.T) {
	t.Parallel()
	item := everyType()
	for _, name := range []string{"b", "ss", "ns", "bs"} {
		typed := map[string]any{"x": []any{map[string]any{"y": item[name]}}}
		if schema.IsPlain(typed) {
			t.Errorf("%s: JSON does not have this type", name)
		}
		delete(item, name)
	}
	want := schema.DecodeMap(item)
	if !schema.IsPlain(want) {
		t.Error("the rest is not plain")
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var read map[string]any
	if err := d.Decode(&read); err != nil {
		t.Fatal(err)
	}
	if got := schema.PlainMap(read); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if schema.PlainMap(nil) != nil {
		t.Error("no map became an empty one")
	}
}
