package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-limiter/weir/internal/schema"
)

// TestLiteral compares the items that no golden file has with literals from the library's source.
// It also checks the version of an entity, which only weir writes.
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
		"declared limits": `{
			"PK": {"S": "own/SYSTEM#"}, "SK": {"S": "#PROVISIONER"},
			"GSI4PK": {"S": "own"}, "GSI4SK": {"S": "own/SYSTEM#"},
			"managed_system": {"BOOL": false}, "managed_resources": {"L": []},
			"managed_entities": {"M": {}}, "weir_entities": {"SS": ["a", "b"]},
			"weir_settings": {"SS": ["on_unavailable", "retention"]}, "weir_again": {"SS": ["b"]},
			"weir_revision": {"N": "7"}, "weir_applied_by": {"S": "ann"}
		}`,
		"apply mark": `{
			"PK": {"S": "ns/SYSTEM#"}, "SK": {"S": "#PROVISIONER#APPLY"},
			"GSI4PK": {"S": "ns"}, "GSI4SK": {"S": "ns/SYSTEM#"},
			"apply_id": {"S": "X"}, "applying_by": {"S": "ann"}, "applying_at": {"N": "9"}
		}`,
	} {
		var raw map[string]any
		if err := json.Unmarshal([]byte(want), &raw); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		sameItems(t, got[kind], fromJSON(t, raw))
	}
}
