package aggregator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// hot is the number of writes in a second at which the buckets of these tests are split.
const hot = 5

// traffic makes records of writes of bucket items, in order.
type traffic struct{ n int }

// bucketItem returns an item of 3,200 units on a number of shards.
func bucketItem(id schema.BucketID, shards int) schema.Item {
	b := &schema.Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: id.Shard,
		Shards: shards, Writes: schema.NewWrites(), Limits: []schema.BucketLimit{{
			Name: "rpm", Capacity: 3_200_000, Refill: 3_200_000, PeriodMS: 60_000,
		}},
	}
	return b.Item()
}

// writes returns the records of some writes of an item in the second that begins after start.
func (tr *traffic) writes(n int, id schema.BucketID, shards int, second int) []*aggregator.Record {
	var records []*aggregator.Record
	for range n {
		tr.n++
		records = append(records, &aggregator.Record{
			Position: position(tr.n), At: start.Add(time.Duration(second) * time.Second),
			Kind: aggregator.Modified, Key: id.Key(),
			Old: bucketItem(id, shards), New: bucketItem(id, shards),
		})
	}
	return records
}

// TestWritesDue checks which writes make a bucket be split.
func TestWritesDue(t *testing.T) {
	t.Parallel()
	acme1 := acme
	acme1.Shard = 1
	other := acme
	other.Entity = "other"
	tr := &traffic{}
	type batches = [][]*aggregator.Record
	again := tr.writes(4, acme, 1, 0)
	back := slices.Concat(tr.writes(2, acme, 1, 1), tr.writes(3, acme, 1, 0), tr.writes(3, acme, 1, 1))
	inserted := tr.writes(5, acme, 1, 0)
	inserted[0].Kind, inserted[0].Old = aggregator.Inserted, nil
	removed := tr.writes(5, acme, 1, 0)
	removed[0].Kind, removed[0].New = aggregator.Removed, nil
	undivided := tr.writes(5, acme, 1, 0)
	undivided[4].New[schema.BucketAttribute("rpm", schema.FieldRefill)] = schema.Number(3_200_001)
	unreadable := tr.writes(5, acme, 1, 0)
	unreadable[4].New[schema.AttrCascade] = schema.Number(1)
	for name, c := range map[string]struct {
		batches batches
		want    string
	}{
		"enough in a second":           {batches{tr.writes(5, acme, 1, 0)}, "[0:1-2]"},
		"one too few":                  {batches{tr.writes(4, acme, 1, 0)}, "[]"},
		"over batches":                 {batches{tr.writes(3, acme, 1, 0), tr.writes(2, acme, 1, 0)}, "[0:1-2]"},
		"over two seconds":             {batches{tr.writes(4, acme, 1, 0), tr.writes(4, acme, 1, 1)}, "[]"},
		"of two items":                 {batches{tr.writes(4, acme, 1, 0), tr.writes(4, other, 1, 0)}, "[]"},
		"more than enough":             {batches{tr.writes(20, acme, 1, 0), tr.writes(20, acme, 1, 0)}, "[0:1-2]"},
		"again in the next second":     {batches{tr.writes(5, acme, 1, 0), tr.writes(5, acme, 1, 1)}, "[0:1-2 0:1-2]"},
		"once in a batch":              {batches{slices.Concat(tr.writes(5, acme, 1, 0), tr.writes(5, acme, 1, 1))}, "[0:1-2]"},
		"a batch that is repeated":     {batches{again, again}, "[]"},
		"times that go back":           {batches{back}, "[0:1-2]"},
		"the write that made the item": {batches{inserted}, "[0:1-2]"},
		"no removal":                   {batches{removed}, "[]"},
		"a limit that does not divide": {batches{undivided}, "[]"},
		"an item that cannot be read":  {batches{unreadable}, "[]"},
		"writes with two counts":       {batches{tr.writes(4, acme, 1, 0), tr.writes(4, acme, 2, 0)}, "[]"},
		"a new count, in its second":   {batches{tr.writes(5, acme, 2, 0)}, "[]"},
		"a new count, too early":       {batches{tr.writes(1, acme, 2, 0), tr.writes(5, acme, 2, 1)}, "[]"},
		"a new count, later":           {batches{tr.writes(1, acme, 2, 0), tr.writes(5, acme, 2, 2)}, "[0:2-4]"},
		"another shard":                {batches{tr.writes(1, acme1, 2, 0), tr.writes(5, acme1, 2, 2)}, "[0:2-4]"},
		"32 shards":                    {batches{tr.writes(1, acme, 32, 0), tr.writes(5, acme, 32, 2)}, "[]"},
		"a minute ago":                 {batches{tr.writes(5, acme, 1, -56)}, "[0:1-2]"},
		"more than a minute ago":       {batches{tr.writes(5, acme, 1, -58)}, "[]"},
		"an impossible time":           {batches{tr.writes(5, acme, 1, 9000), tr.writes(5, acme, 1, 0)}, "[0:1-2]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &aggregator.Writes{}
			got := []string{}
			for _, batch := range c.batches {
				w = reborn(t, w)
				for _, d := range w.Due(batch, hot, start.Add(3*time.Second)) {
					got = append(got, fmt.Sprintf("%d:%d-%d", d.Bucket.Shard, d.From, d.To))
				}
			}
			equal(t, "doublings", fmt.Sprint(got), c.want)
		})
	}
}

// reborn returns the counts as another process gets them.
func reborn(t *testing.T, w *aggregator.Writes) *aggregator.Writes {
	t.Helper()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	again := &aggregator.Writes{}
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	return again
}

// TestWritesBounded checks that the counts stay small whatever is written, and that a hot item is
// not forgotten beside as many others as a partition of a table can take.
func TestWritesBounded(t *testing.T) {
	t.Parallel()
	tr, w, size := &traffic{}, &aggregator.Writes{}, 0
	splits := 0
	for second := range 3 {
		for batch := range 10 { // 80 writes of one item and 20 others, ten times a second
			var records []*aggregator.Record
			for n := range 100 {
				id := acme
				if n%5 == 4 {
					id.Entity = fmt.Sprintf("e%d-%d-%d", second, batch, n)
				}
				records = append(records, tr.writes(1, id, 1, second)...)
			}
			splits += len(w.Due(records, 800, start))
			w = reborn(t, w)
		}
	}
	equal(t, "splits", splits, 3)
	var all []*aggregator.Record
	for n := range 10_000 {
		id := acme
		id.Entity = fmt.Sprintf("%0256d", n)
		all = append(all, tr.writes(1, id, 1, 3)...)
	}
	w.Due(all, 800, start)
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	size = len(text)
	t.Logf("%d bytes after %d items", size, len(all))
	if size > 50_000 {
		t.Errorf("got %d bytes, want at most 50,000", size)
	}
}

// TestWritesMalformed checks that counts of another form are refused, and change nothing.
func TestWritesMalformed(t *testing.T) {
	t.Parallel()
	tr, w := &traffic{}, &aggregator.Writes{}
	w.Due(tr.writes(4, acme, 1, 0), hot, start)
	for _, text := range []string{
		`{}`, `[1]`, `[{"i":"x","c":1}]`, `[{"i":"AAAAAAAAAAAAAAAAAAAAAA","c":0}]`,
		`[{"i":"AAAAAAAAAAAAAAAAAAAAAA","c":1,"n":-1}]`,
	} {
		if err := json.Unmarshal([]byte(text), w); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
	equal(t, "doublings", len(w.Due(tr.writes(1, acme, 1, 0), hot, start)), 1)
}

// TestDoubled checks which records say that a shard count was raised.
func TestDoubled(t *testing.T) {
	t.Parallel()
	acme1 := acme
	acme1.Shard = 1
	for name, c := range map[string]struct {
		id       schema.BucketID
		from, to int
		change   func(r *aggregator.Record)
		want     bool
	}{
		"raised":              {acme, 2, 4, nil, true},
		"the same":            {acme, 4, 4, nil, false},
		"lowered":             {acme, 4, 2, nil, false},
		"of another shard":    {acme1, 2, 4, nil, false},
		"without a count":     {acme, 1, 2, func(r *aggregator.Record) { delete(r.Old, schema.AttrShardCount) }, true},
		"made":                {acme, 1, 4, func(r *aggregator.Record) { r.Kind, r.Old = aggregator.Inserted, nil }, false},
		"without an item":     {acme, 1, 4, func(r *aggregator.Record) { r.Old = nil }, false},
		"a count that is not": {acme, 1, 4, func(r *aggregator.Record) { r.New[schema.AttrShardCount] = schema.Null() }, false},
		"a huge count":        {acme, 1, 1 << 40, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := (&traffic{}).writes(1, c.id, c.to, 0)[0]
			r.Old = bucketItem(c.id, c.from)
			if c.change != nil {
				c.change(r)
			}
			got := aggregator.Doubled([]*aggregator.Record{r})
			if want := (aggregator.Doubling{Bucket: c.id, From: c.from, To: c.to}); c.want {
				equal(t, "doublings", fmt.Sprint(got), fmt.Sprint([]aggregator.Doubling{want}))
			} else {
				equal(t, "doublings", len(got), 0)
			}
		})
	}
}
