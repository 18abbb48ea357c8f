package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-limiter/weir/internal/schema"
)

// TestLiteral compares the items that no golden file has with what the library's source writes, and
// the version of an entity, which only weir writes.
func TestLiteral(t *testing.T) {
	t.Parallel()
	got := map[string]schema.Item{}
	for _, item := range samples(t) {
		kind, _, _, err := again(item)
		if err != nil {
			t.Fatal(err)
		}
		delete(item, "later")
		got[kind] = item
	}
	for kind, want := range map[string]string{
		"pending": `{
			"PK": {"S": "ns/SYSTEM#"}, "SK": {"S": "#PROVISIONER#PENDING#sync#entity#bot#gpt-4"},
			"GSI4PK": {"S": "ns"}, "GSI4SK": {"S": "ns/SYSTEM#"},
			"kind": {"S": "sync"}, "level": {"S": "entity"}, "target": {"S": "bot#gpt-4"},
			"written_ms": {"N": "5"},
			"owners": {"M": {
				"a": {"M": {"lease": {"N": "7"}, "full": {"BOOL": true}}},
				"b": {"M": {"lease": {"N": "0"}, "full": {"BOOL": false}}}
			}}
		}`,
		"operation": `{
			"PK": {"S": "ns/BUCKET#bot#a/b#0"}, "SK": {"S": "#OP#key 1"},
			"GSI4PK": {"S": "ns"}, "GSI4SK": {"S": "OP#bot#a/b#key 1"},
			"entity_id": {"S": "bot"}, "resource": {"S": "a/b"}, "operation": {"S": "top_up"},
			"writer": {"S": "w"}, "ent": {"S": "-"}, "shards": {"N": "2"},
			"amounts": {"M": {"rpm": {"N": "5"}}}, "ttl": {"N": "9"}
		}`,
		"usage": `{
			"PK": {"S": "ns/ENTITY#bot"}, "SK": {"S": "#USAGE#a/b#2024-01"},
			"GSI2PK": {"S": "ns/RESOURCE#a/b"}, "GSI2SK": {"S": "USAGE#2024-01#bot"},
			"GSI4PK": {"S": "ns"}, "GSI4SK": {"S": "ns/ENTITY#bot"},
			"entity_id": {"S": "bot"}, "resource": {"S": "a/b"}, "window": {"S": "monthly"},
			"window_start": {"S": "2024-01-01T00:00:00Z"}, "total_events": {"N": "2"},
			"r.p_m": {"N": "5"}, "tpm": {"N": "-1"}, "tpm#od": {"N": "1"}, "ttl": {"N": "9"}
		}`,
		"entity": `{
			"PK": {"S": "ns/ENTITY#bot"}, "SK": {"S": "#META"},
			"GSI1PK": {"S": "ns/PARENT#acme"}, "GSI1SK": {"S": "CHILD#bot"},
			"GSI4PK": {"S": "ns"}, "GSI4SK": {"S": "ns/ENTITY#bot"},
			"entity_id": {"S": "bot"}, "parent_id": {"S": "acme"}, "cascade": {"BOOL": false},
			"version": {"N": "3"},
			"metadata": {"M": {
				"n": {"N": "1.50"},
				"deep": {"L": [{"NULL": true}, {"BOOL": true}, {"N": "-1"}, {"M": {}}]}
			}}
		}`,
		"provisioner": `{
			"PK": {"S": "ns/SYSTEM#"}, "SK": {"S": "#PROVISIONER"},
			"GSI4PK": {"S": "ns"}, "GSI4SK": {"S": "ns/SYSTEM#"},
			"managed_system": {"BOOL": false}, "managed_resources": {"L": []},
			"managed_entities": {"M": {}}
		}`,
	} {
		var raw map[string]any
		if err := json.Unmarshal([]byte(want), &raw); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		sameItems(t, got[kind], fromJSON(t, raw))
	}
}
