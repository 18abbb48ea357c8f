package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// golden is a file of items that the Python library wrote.
type golden struct {
	NamespaceID string           `json:"namespace_id"`
	Version     string           `json:"version"`
	Raw         []map[string]any `json:"items"`
}

func loadGolden(t testing.TB, file string) (golden, []schema.Item) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	items := make([]schema.Item, len(g.Raw))
	for i, raw := range g.Raw {
		items[i] = fromJSON(t, raw)
	}
	return g, items
}

// fromJSON returns the item for the JSON that DynamoDB's tools print.
func fromJSON(t testing.TB, raw map[string]any) schema.Item {
	t.Helper()
	item := make(schema.Item, len(raw))
	for name, value := range raw {
		item[name] = valueFromJSON(t, value)
	}
	return item
}

func valueFromJSON(t testing.TB, raw any) types.AttributeValue {
	t.Helper()
	for kind, v := range raw.(map[string]any) {
		switch kind {
		case "S":
			return schema.String(v.(string))
		case "N":
			return &types.AttributeValueMemberN{Value: v.(string)}
		case "BOOL":
			return schema.Bool(v.(bool))
		case "NULL":
			return schema.Null()
		case "M":
			return &types.AttributeValueMemberM{Value: fromJSON(t, v.(map[string]any))}
		case "L":
			list := []types.AttributeValue{}
			for _, element := range v.([]any) {
				list = append(list, valueFromJSON(t, element))
			}
			return &types.AttributeValueMemberL{Value: list}
		case "SS":
			var set []string
			for _, element := range v.([]any) {
				set = append(set, element.(string))
			}
			return schema.StringSet(set...)
		}
	}
	t.Fatalf("unknown value %v", raw)
	return nil
}

// sameItems fails with the attributes that differ, including their types.
func sameItems(t testing.TB, got, want schema.Item) {
	t.Helper()
	if faults := differences(got, want); faults != "" {
		t.Errorf("item %s:\n%s", keyOf(want), faults)
	}
}

func differences(got, want schema.Item) string {
	var faults []string
	names := maps.Clone(want)
	maps.Copy(names, got)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !reflect.DeepEqual(got[name], want[name]) {
			fault := fmt.Sprintf("%s: got %s, want %s", name, show(got[name]), show(want[name]))
			faults = append(faults, fault)
		}
	}
	return strings.Join(faults, "\n")
}

func show(value types.AttributeValue) string {
	if value == nil {
		return "nothing"
	}
	b, err := json.Marshal(value)
	return fmt.Sprintf("%T %s %v", value, b, err)
}

func keyOf(item schema.Item) string {
	key, err := schema.KeyOf(item)
	if err != nil {
		return err.Error()
	}
	return key.String()
}

// ok returns the value, and fails the test if there is an error.
func ok[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// again decodes an item into the type of its kind and encodes it again. kind is empty if there is
// no type for the item. extra is the number of attributes in Extra.
func again(item schema.Item) (kind string, encoded schema.Item, extra int, err error) {
	key, err := schema.KeyOf(item)
	if err != nil {
		return "", nil, 0, err
	}
	switch sk := key.SK; {
	case sk == schema.SKState:
		return codec("bucket", item, schema.ParseBucket)
	case sk == schema.SKMeta:
		return codec("entity", item, schema.ParseEntity)
	case strings.HasPrefix(sk, schema.SKConfig):
		return codec("config", item, schema.ParseConfig)
	case strings.HasPrefix(sk, schema.SKUsagePrefix):
		return codec("usage", item, schema.ParseUsage)
	case strings.HasPrefix(sk, schema.SKAuditPrefix):
		return codec("audit", item, schema.ParseAuditEvent)
	case sk == schema.SKApplyMark:
		return codec("apply mark", item, schema.ParseApplyMark)
	case sk == schema.SKProvisioner && item["weir_revision"] != nil:
		return codec("declared limits", item, schema.ParseProvisioner)
	case sk == schema.SKProvisioner:
		return codec("provisioner", item, schema.ParseProvisioner)
	case sk == schema.SKResources:
		return codec("resources", item, schema.ParseResources)
	case sk == schema.SKEntityConfigResources:
		return codec("entity config resources", item, schema.ParseEntityConfigResources)
	case sk == schema.SKVersion:
		return codec("version", item, schema.ParseVersion)
	case strings.HasPrefix(sk, schema.SKNamespacePrefix),
		strings.HasPrefix(sk, schema.SKNamespaceIDPrefix):
		return codec("namespace", item, schema.ParseNamespace)
	}
	return "", nil, 0, nil
}

func codec[T any](
	kind string, item schema.Item, parse func(schema.Item) (T, error),
) (string, schema.Item, int, error) {
	v, err := parse(item)
	if err != nil {
		return kind, nil, 0, err
	}
	extra := reflect.ValueOf(v).Elem().FieldByName("Extra").Len()
	switch v := any(v).(type) {
	case interface{ Item() schema.Item }:
		return kind, v.Item(), extra, nil
	case interface{ Item() (schema.Item, error) }:
		encoded, err := v.Item()
		return kind, encoded, extra, err
	}
	return kind, nil, extra, fmt.Errorf("%T cannot be encoded", v)
}
