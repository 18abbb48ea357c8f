package schema_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
)

// TestAggregatorItems checks that the aggregator's items are read as they were written, are in no
// index, and are recognised by their keys.
func TestAggregatorItems(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)
	const label = "2026-03-04T05:06:07.123"
	for name, c := range map[string]struct {
		item func() (schema.Item, any)
		kind func(schema.Key) bool
	}{
		"state": {
			roundTrip(&schema.Aggregator{
				Label: label, Since: at, Until: at, Days: at, Months: at, TakenOver: at,
			}, schema.ParseAggregator), func(k schema.Key) bool { return k == schema.AggregatorKey() },
		},
		"checkpoint": {
			roundTrip(&schema.Checkpoint{
				Label: label, Shard: "shardId-1", Sequence: "007", Position: "p", Until: at, Done: true, TTL: 5,
			}, schema.ParseCheckpoint), schema.IsCheckpoint,
		},
		"gap": {
			roundTrip(&schema.Gap{
				From: at, To: at, Namespace: "ns", Reason: "why", MarkedAt: at, TTL: 5,
			}, schema.ParseGap), schema.IsGap,
		},
		"gap from the start": {
			roundTrip(&schema.Gap{To: at}, schema.ParseGap), schema.IsGap,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item, failed := c.item()
			if failed != nil {
				t.Fatal(failed)
			}
			key, err := schema.KeyOf(item)
			if err != nil || !c.kind(key) || schema.IsCountedResource(key) {
				t.Errorf("got the key %v, %v", key, err)
			}
			if _, indexed := item[schema.AttrGSI4PK]; indexed {
				t.Errorf("got %v, in an index", item)
			}
		})
	}
}

// roundTrip returns a function that encodes and decodes a value, and returns the item and what is
// wrong.
func roundTrip[T interface{ Item() schema.Item }](
	v T, parse func(schema.Item) (T, error),
) func() (schema.Item, any) {
	return func() (schema.Item, any) {
		item := v.Item()
		got, err := parse(item)
		if err != nil {
			return item, err
		}
		if !reflect.DeepEqual(got, v) {
			return item, got
		}
		for _, wrong := range []schema.Item{{}, schema.VersionKey().Item()} {
			if _, err := parse(wrong); !isMalformed(err) {
				return item, errors.Join(errors.New("a wrong item was decoded"), err)
			}
		}
		return item, nil
	}
}

func isMalformed(err error) bool {
	_, ok := errors.AsType[*schema.MalformedError](err)
	return ok
}

// TestCountedResource checks the key of a resource with usage, whose name may contain slashes.
func TestCountedResource(t *testing.T) {
	t.Parallel()
	want := schema.CountedResource{Namespace: "ns", Resource: "openai/gpt-4o"}
	got, err := schema.ParseCountedResource(want.Key())
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := schema.ParseCountedResource(schema.VersionKey()); !isMalformed(err) {
		t.Errorf("another key: got %v", err)
	}
}
