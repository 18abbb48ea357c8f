package aggregator_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

const label = "2026-03-04T05:06:07.123"

// start is ten minutes before the end of an hour, a day and a month.
var start = time.Date(2026, 3, 31, 23, 50, 0, 0, time.UTC)

var acme = schema.BucketID{Namespace: "ns", Entity: "acme", Resource: "gpt-4o"}

// image returns a bucket item with counts in milli-units.
func image(id schema.BucketID, counts aggregator.Counts) schema.Item {
	item := id.Key().Item()
	for limit, n := range counts {
		item[schema.BucketAttribute(limit, schema.FieldConsumed)] = schema.Number(n)
	}
	return item
}

// position returns the position of a record, or "" for number 0.
func position(n int) aggregator.Position {
	p, err := aggregator.NewPosition(label, strconv.Itoa(n))
	if err != nil {
		panic(err)
	}
	return p
}

// modified returns the record of a write.
func modified(n int, at time.Time, id schema.BucketID, before, after aggregator.Counts) *aggregator.Record {
	r := &aggregator.Record{
		Sequence: strconv.Itoa(n), Position: position(n), At: at, Kind: aggregator.Modified,
		Key: id.Key(), New: image(id, after),
	}
	if before == nil {
		r.Kind = aggregator.Inserted
	} else {
		r.Old = image(id, before)
	}
	return r
}

// parse returns the changes of records, and fails if one has a fault.
func parse(t *testing.T, records ...*aggregator.Record) []*aggregator.Change {
	t.Helper()
	var changes []*aggregator.Change
	for _, r := range records {
		c, faults := aggregator.Parse(r)
		for _, f := range faults {
			t.Fatal(f)
		}
		if c != nil {
			changes = append(changes, c)
		}
	}
	return changes
}

// table holds usage items in memory.
type table map[schema.Key]schema.Item

// apply writes an update as DynamoDB would. If its condition fails, it returns the item.
func (tb table) apply(u *aggregator.Update, unchecked bool) schema.Item {
	key := u.Usage.Key()
	old := tb[key]
	for _, s := range u.Shards {
		p := aggregator.Position(schema.StringAttribute(old, schema.PositionAttribute(s.Shard)))
		if p >= s.First && !unchecked {
			return old
		}
	}
	item := u.Usage.Item()
	for name, value := range old {
		n, err := schema.Int64(value)
		if name == schema.AttrTTL || err != nil {
			item[name] = value
			continue
		}
		more, _ := schema.Int64(item[name])
		item[name] = schema.Number(n + more)
	}
	for _, s := range u.Shards {
		item[schema.PositionAttribute(s.Shard)] = schema.String(string(s.Last))
		item[schema.CountedAttribute(s.Shard)] = schema.String(s.Counts.String())
	}
	tb[key] = item
	return nil
}

// write writes bookings as a reader does.
func (tb table) write(bookings []*aggregator.Booking) {
	for _, b := range bookings {
		for b != nil {
			refused := tb.apply(b.Update(), false)
			if refused == nil {
				break
			}
			b = b.Rest(refused)
		}
	}
}

// hours returns the sums of a limit by the start of the hour.
func (tb table) hours(t *testing.T, limit string) map[string]int64 {
	t.Helper()
	sums := make(map[string]int64)
	for _, item := range tb {
		u, err := schema.ParseUsage(item)
		if err != nil {
			t.Fatal(err)
		}
		if u.Counters[limit] != 0 {
			sums[u.Start] += u.Counters[limit]
		}
	}
	return sums
}

func (tb table) items() []schema.Item {
	var items []schema.Item
	for _, item := range tb {
		items = append(items, maps.Clone(item))
	}
	return items
}

func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func equalSums(t *testing.T, got, want map[string]int64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
