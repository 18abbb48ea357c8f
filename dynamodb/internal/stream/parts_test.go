package stream_test

import (
	"slices"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestPartsOfATotal checks which usage items are added up. A month of an entity with a day that has
// hours and no item of its own has no parts.
func TestPartsOfATotal(t *testing.T) {
	t.Parallel()
	item := func(entity, windowKey string) schema.Item {
		return schema.UsageKey("ns", entity, "gpt-4o", windowKey).Item()
	}
	items := []schema.Item{
		item("whole", "2026-11"), item("whole", "2026-11-01"), item("whole", "2026-11-01T10:00:00Z"),
		item("whole", "2026-11-02"), item("whole", "2026-11-02T00:00:00Z"), item("whole", "2026-11-02T09:00:00Z"),
		item("expired", "2026-11-05"), // its hours are gone
		item("lacking", "2026-11-01"), item("lacking", "2026-11-01T10:00:00Z"), item("lacking", "2026-11-03T10:00:00Z"),
		schema.MetaKey("ns", "whole").Item(), {},
	}
	for of, want := range map[weir.UsageWindow][]string{
		weir.Daily: {
			"whole 2026-11-01T10:00:00Z", "whole 2026-11-02T00:00:00Z", "whole 2026-11-02T09:00:00Z",
			"lacking 2026-11-01T10:00:00Z", "lacking 2026-11-03T10:00:00Z",
		},
		weir.Monthly: {"whole 2026-11-01", "whole 2026-11-02", "expired 2026-11-05"},
	} {
		var got []string
		for _, part := range stream.PartsOf(of, items) {
			key, err := schema.KeyOf(part)
			if err != nil {
				t.Fatal(err)
			}
			_, entity, err := schema.ParseEntityPK(key.PK)
			if err != nil {
				t.Fatal(err)
			}
			_, windowKey, err := schema.ParseUsageSK(key.SK)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entity+" "+windowKey)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", of, got, want)
		}
	}
}
