package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	id := schema.BucketID{Namespace: "a-b_c", Entity: "bot", Resource: "x/y", Shard: 12}
	for _, c := range []struct{ got, want string }{
		{id.Key().String(), "a-b_c/BUCKET#bot#x/y#12 #STATE"},
		{id.GSI2SK(), "BUCKET#bot#12"},
		{id.GSI3SK(), "BUCKET#x/y#12"},
		{id.GSI4SK(), "BUCKET#bot#x/y#12"},
		{schema.MetaKey("n", "e").String(), "n/ENTITY#e #META"},
		{schema.EntityConfigKey("n", "e", "_default_").String(), "n/ENTITY#e #CONFIG#_default_"},
		{schema.ResourceConfigKey("n", "r").String(), "n/RESOURCE#r #CONFIG"},
		{schema.SystemConfigKey("n").String(), "n/SYSTEM# #CONFIG"},
		{schema.ResourcesKey("n").String(), "n/SYSTEM# #RESOURCES"},
		{schema.EntityConfigResourcesKey("n").String(), "n/SYSTEM# #ENTITY_CONFIG_RESOURCES"},
		{schema.ProvisionerKey("n").String(), "n/SYSTEM# #PROVISIONER"},
		{schema.VersionKey().String(), "_/SYSTEM# #VERSION"},
		{schema.NamespaceKey("default").String(), "_/SYSTEM# #NAMESPACE#default"},
		{schema.NamespaceIDKey("abc").String(), "_/SYSTEM# #NSID#abc"},
		{schema.AuditKey("n", schema.AuditSystem, "01").String(), "n/AUDIT#$SYSTEM #AUDIT#01"},
		{schema.AuditPK("n", schema.AuditResource("r")), "n/AUDIT#$RESOURCE:r"},
		{schema.UsageKey("n", "e", "r", "2024-01").String(), "n/ENTITY#e #USAGE#r#2024-01"},
		{schema.ParentPK("n", "p"), "n/PARENT#p"},
		{schema.ChildSK("e"), "CHILD#e"},
		{schema.EntityConfigPK("n", "r"), "n/ENTITY_CONFIG#r"},
		{schema.UsageGSI2SK("2024-01", "e"), "USAGE#2024-01#e"},
		{schema.BucketAttribute("a.b_c-d", schema.FieldBalance), "b_a.b_c-d_tk"},
		{schema.LimitAttribute("a.b_c-d", schema.FieldCapacity), "l_a.b_c-d_cp"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestKeysRoundTrip builds keys of random valid names and parses them.
func TestKeysRoundTrip(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	for range 5000 {
		id := schema.BucketID{
			Namespace: randomName(rng, letters+digits+"_", letters+digits+"_-"),
			Entity:    randomName(rng, letters+digits, letters+digits+"_.-:@"),
			Resource:  randomName(rng, letters, letters+digits+"_.-/"),
			Shard:     rng.IntN(64),
		}
		if got, err := schema.ParseBucketPK(id.PK()); err != nil || got != id {
			t.Fatalf("%s: got %+v, %v", id, got, err)
		}
		limit := randomName(rng, letters, letters+digits+"_.-")
		name, field, isLimit := schema.ParseBucketAttribute(schema.BucketAttribute(limit, "tk"))
		if !isLimit || name != limit || field != "tk" {
			t.Fatalf("%s: got %q, %q", limit, name, field)
		}
		name, field, isLimit = schema.ParseLimitAttribute(schema.LimitAttribute(limit, "cp"))
		if !isLimit || name != limit || field != "cp" {
			t.Fatalf("%s: got %q, %q", limit, name, field)
		}
		resource, window, err := schema.ParseUsageSK(schema.UsageKey("n", id.Entity, id.Resource, "2024-01").SK)
		if err != nil || resource != id.Resource || window != "2024-01" {
			t.Fatalf("got %q, %q, %v", resource, window, err)
		}
	}
}

func TestKeysMalformed(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func(string) error{
		"namespace": func(s string) error { _, _, err := schema.SplitNamespace(s); return err },
		"bucket":    func(s string) error { _, err := schema.ParseBucketPK(s); return err },
		"child":     func(s string) error { _, err := schema.ParseChildSK(s); return err },
		"usage":     func(s string) error { _, _, err := schema.ParseUsageSK(s); return err },
		"usage2":    func(s string) error { _, _, err := schema.ParseUsageGSI2SK(s); return err },
		"entity":    func(s string) error { _, _, err := schema.ParseEntityPK(s); return err },
		"audit":     func(s string) error { _, _, err := schema.ParseAuditPK(s); return err },
	} {
		for _, s := range []string{
			"", "BUCKET#", "#USAGE#a", "USAGE#a", "BUCKET#a#x", "BUCKET#a#1e2", "BUCKET#a#+1",
		} {
			if err := parse(s); err == nil || !strings.Contains(err.Error(), `"`+s+`"`) {
				t.Errorf("%s: got error %v of %q", name, err, s)
			}
		}
	}
	for _, s := range []string{"", "b_", "b__", "b__tk", "b_tk", "bx_y", "l__cp", "l_cp", "cp"} {
		if _, _, isLimit := schema.ParseBucketAttribute(s); isLimit {
			t.Errorf("%q is taken for a limit's", s)
		}
		if _, _, isLimit := schema.ParseLimitAttribute(s); isLimit {
			t.Errorf("%q is taken for a limit's", s)
		}
	}
}

func TestAnyValues(t *testing.T) {
	t.Parallel()
	binary := &types.AttributeValueMemberB{Value: []byte{1}}
	in := map[string]any{
		"s": "", "b": false, "nil": nil, "int": 7, "n": int64(-1), "big": json.Number("1e125"),
		"list": []any{"a", []any{}}, "map": map[string]any{"x": map[string]any{}}, "raw": binary,
	}
	value := ok[types.AttributeValue](t)(schema.EncodeMap(in))
	out := schema.DecodeMap(value.(*types.AttributeValueMemberM).Value)
	if len(out) != len(in) || out["int"] != int64(7) || out["big"] != json.Number("1e125") ||
		out["raw"] != binary {
		t.Errorf("got %v", out)
	}
	again := ok[types.AttributeValue](t)(schema.EncodeMap(out))
	sameItems(t, schema.Item{"m": again}, schema.Item{"m": value})

	cycle := map[string]any{}
	cycle["self"] = []any{cycle}
	for _, c := range []struct {
		in   map[string]any
		want string
	}{
		{map[string]any{"x": uint8(1)}, ".x: a uint8 cannot be stored"},
		{map[string]any{"x": []any{0, json.Number("NaN")}}, `.x[1]: "NaN" is not a number`},
		{map[string]any{"x": json.Number("1 ")}, `.x: "1 " is not a number`},
		{map[string]any{"x": json.Number("null")}, `.x: "null" is not a number`},
		{map[string]any{"x": json.Number("1e126")}, `.x: "1e126" is a number outside 1E-130 to 9.9E+125`},
		{map[string]any{"x": json.Number("1e-131")}, `.x: "1e-131" is a number outside 1E-130 to 9.9E+125`},
		{map[string]any{"x": json.Number("1e99999999999999999999")}, "is a number outside 1E-130 to 9.9E+125"},
		{map[string]any{"x": json.Number(strings.Repeat("1", 39))}, "has more than 38 digits"},
		{cycle, ": is nested deeper than 32 levels"},
	} {
		if _, err := schema.EncodeMap(c.in); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got error %v, want …%s", err, c.want)
		}
	}
}

func TestInt64(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"0": "", "-9223372036854775808": "", "9223372036854775807": "",
		"9223372036854775808": "is beyond 64 bits", "1.0": "is not a whole number", "": "is not a whole number",
	} {
		value := &types.AttributeValueMemberN{Value: s}
		n, err := schema.Int64(value)
		if want == "" && (err != nil || show(schema.Number(n)) != show(value)) {
			t.Errorf("%s: got %d, %v", s, n, err)
		}
		if want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: got %d, %v", s, n, err)
		}
	}
	if _, err := schema.Int64(nil); err == nil {
		t.Error("a null value is accepted as a number")
	}
}
