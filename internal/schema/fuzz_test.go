package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir/internal/schema"
)

// FuzzItem decodes items of strings and numbers as the kind that their key says. An item that can
// be decoded is encoded and decoded again with the same result, and no attribute is lost.
func FuzzItem(f *testing.F) {
	for _, w := range written {
		_, items := loadGolden(f, w.file)
		for _, item := range items {
			f.Add(flatJSON(item))
		}
	}
	for _, item := range samples(f) {
		f.Add(flatJSON(item))
	}
	f.Add([]byte(`{"PK":"n/BUCKET#e#r#0","SK":"#STATE","b_a_tk":"1","b_wcu_cp":-5,"shard_count":1e3}`))
	f.Add([]byte(`{"PK":"n/SYSTEM#","SK":"#CONFIG","l_a_cp":1,"l_a_ra":0,"l_a_rp":1,"w_b_cp":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		item := itemOf(b)
		kind, first, extra, err := again(item)
		if kind == "" || err != nil {
			return
		}
		_, second, sameExtra, err := again(first)
		if err != nil || extra != sameExtra {
			t.Fatalf("%s %v: read again: %v, raw attributes %d and %d", kind, item, err, extra, sameExtra)
		}
		sameItems(t, second, first)
		for name := range item {
			_, kept := first[name]
			if !kept && !dropped(name) && !empty(item[name]) {
				t.Errorf("%s: attribute %s is lost", kind, name)
			}
		}
	})
}

// dropped reports whether an attribute may be missing after encoding: an index key on a kind of
// item that has none.
func dropped(name string) bool { return len(name) > 3 && name[:3] == "GSI" }

// empty reports whether an attribute means the same as a missing one.
func empty(value types.AttributeValue) bool {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return v.Value == ""
	case *types.AttributeValueMemberN:
		n, err := schema.Int64(v)
		return err == nil && n == 0
	case *types.AttributeValueMemberNULL:
		return true
	}
	return false
}

// itemOf returns the item for a JSON object of strings, numbers, booleans, lists and objects.
func itemOf(b []byte) schema.Item {
	var raw map[string]any
	if json.Unmarshal(b, &raw) != nil {
		return nil
	}
	item := schema.Item{}
	for name, value := range raw {
		if n, isNumber := value.(float64); isNumber {
			text, err := json.Marshal(n)
			if err != nil {
				continue
			}
			item[name] = &types.AttributeValueMemberN{Value: string(text)}
			continue
		}
		encoded, err := schema.EncodeMap(map[string]any{"": value})
		if err == nil {
			item[name] = encoded.(*types.AttributeValueMemberM).Value[""]
		}
	}
	return item
}

// flatJSON is the inverse of itemOf.
func flatJSON(item schema.Item) []byte {
	values := schema.DecodeMap(item)
	for name, value := range values {
		if _, raw := value.(types.AttributeValue); raw {
			delete(values, name)
		}
	}
	b, err := json.Marshal(values)
	if err != nil {
		return nil
	}
	return b
}

// FuzzKeys parses strings as each kind of key, and builds the same string from the result.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{
		"n/BUCKET#e#r#0", "n/BUCKET#e#a/b#31", "BUCKET#e#0", "BUCKET#e#r#1", "n/ENTITY#e", "CHILD#e",
		"USAGE#2024-01#e", "#USAGE#r#2024-01", "b_a_b_tk", "l_a.b-c_cp",
		"n/AUDIT#$SYSTEM", "#", "/", "b__",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check := func(err error, again string) {
			if err == nil && again != s {
				t.Errorf("%q is written %q", s, again)
			}
		}
		id, err := schema.ParseBucketPK(s)
		check(err, id.PK())
		ns, entity, err := schema.ParseEntityPK(s)
		check(err, schema.EntityPK(ns, entity))
		ns, entity, err = schema.ParseAuditPK(s)
		check(err, schema.AuditPK(ns, entity))
		entity, err = schema.ParseChildSK(s)
		check(err, schema.ChildSK(entity))
		window, entity, err := schema.ParseUsageGSI2SK(s)
		check(err, schema.UsageGSI2SK(window, entity))
		resource, window, err := schema.ParseUsageSK(s)
		check(err, schema.UsageKey("", "", resource, window).SK)
		if limit, field, isLimit := schema.ParseBucketAttribute(s); isLimit {
			check(nil, schema.BucketAttribute(limit, field))
		}
		if limit, field, isLimit := schema.ParseLimitAttribute(s); isLimit {
			check(nil, schema.LimitAttribute(limit, field))
		}
	})
}
