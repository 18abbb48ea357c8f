package aggregator_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

type counts = aggregator.Counts

const (
	hour23 = "2026-03-31T23:00:00Z"
	hour0  = "2026-04-01T00:00:00Z"
)

// bookCase is a list of records and the sums of rpm by hour.
type bookCase struct {
	records []*aggregator.Record
	want    map[string]int64
	events  int64
}

// run books the records twice.
func (tc *bookCase) run(t *testing.T) {
	t.Helper()
	tb := table{}
	for range 2 { // everything again changes nothing
		tb.write(aggregator.Book(parse(t, tc.records...), nil))
	}
	equalSums(t, tb.hours(t, "rpm"), tc.want)
	var events int64
	for _, item := range tb {
		n, _ := schema.Int64(item[schema.AttrTotalEvents])
		events += n
		if _, shown := item["wcu"]; shown {
			t.Errorf("got the count of writes in %v", item)
		}
	}
	equal(t, "events", events, tc.events)
}

// TestBookUnits checks how many units a record counts, and for which hour.
func TestBookUnits(t *testing.T) {
	t.Parallel()
	later := start.Add(20 * time.Minute)
	for name, tc := range map[string]bookCase{
		"the write that creates the item counts": {
			[]*aggregator.Record{modified(1, start, acme, nil, counts{"rpm": 2000})},
			map[string]int64{hour23: 2}, 1,
		},
		"a limit that is added begins at 0": {
			[]*aggregator.Record{
				modified(1, start, acme, counts{"tpm": 5000}, counts{"tpm": 5000, "rpm": 3000}),
			},
			map[string]int64{hour23: 3}, 1,
		},
		"a refund makes a later hour negative": {
			[]*aggregator.Record{
				modified(1, start, acme, nil, counts{"rpm": 9000}),
				modified(2, later, acme, counts{"rpm": 9000}, counts{"rpm": 4000}),
			},
			map[string]int64{hour23: 9, hour0: -5}, 2,
		},
		"fractions telescope": {
			[]*aggregator.Record{
				modified(1, start, acme, nil, counts{"rpm": 400}),
				modified(2, start, acme, counts{"rpm": 400}, counts{"rpm": 800}),
				modified(3, start, acme, counts{"rpm": 800}, counts{"rpm": 1200}),
				modified(4, later, acme, counts{"rpm": 1200}, counts{"rpm": -300}),
			},
			map[string]int64{hour23: 1, hour0: -2}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run(t)
		})
	}
}

// TestBookRecords checks which records count.
func TestBookRecords(t *testing.T) {
	t.Parallel()
	shard1 := acme
	shard1.Shard = 1
	later := start.Add(20 * time.Minute)
	for name, tc := range map[string]bookCase{
		"records twice and out of order": {
			[]*aggregator.Record{
				modified(3, start, acme, counts{"rpm": 2000}, counts{"rpm": 3000}),
				modified(1, start, acme, nil, counts{"rpm": 1000}),
				modified(3, start, acme, counts{"rpm": 2000}, counts{"rpm": 3000}),
				modified(2, start, acme, counts{"rpm": 1000}, counts{"rpm": 2000}),
			},
			map[string]int64{hour23: 3}, 3,
		},
		"shards of a bucket share an item": {
			[]*aggregator.Record{
				modified(7, start, acme, nil, counts{"rpm": 1000}),
				modified(2, start, shard1, nil, counts{"rpm": 2000}),
			},
			map[string]int64{hour23: 3}, 2,
		},
		"an item that is deleted and created again begins at 0": {
			[]*aggregator.Record{
				modified(1, start, acme, nil, counts{"rpm": 1000}),
				{
					Position: position(2), At: start, Kind: aggregator.Removed, Key: acme.Key(),
					Old: image(acme, counts{"rpm": 1000}),
				},
				modified(3, later, acme, nil, counts{"rpm": 5000}),
			},
			map[string]int64{hour23: 1, hour0: 5}, 2,
		},
		"the count of writes is not usage": {
			[]*aggregator.Record{modified(1, start, acme, nil, counts{"wcu": 1000})},
			map[string]int64{}, 0,
		},
		"a limit that is removed stays counted": {
			[]*aggregator.Record{
				modified(1, start, acme, nil, counts{"rpm": 1000}),
				modified(2, start, acme, counts{"rpm": 1000}, counts{}),
			},
			map[string]int64{hour23: 1}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run(t)
		})
	}
}

// TestBookingOverlaps checks that a refused update is repeated with the records that the item lacks.
func TestBookingOverlaps(t *testing.T) {
	t.Parallel()
	var records []*aggregator.Record
	for i := range 10 {
		records = append(records, modified(i+1, start, acme,
			counts{"rpm": int64(i) * 1000}, counts{"rpm": int64(i+1) * 1000}))
	}
	changes := parse(t, records...)
	tb := table{}
	for _, part := range [][]*aggregator.Change{changes[:6], changes[3:8], changes[:2], changes[5:]} {
		tb.write(aggregator.Book(part, nil))
	}
	equalSums(t, tb.hours(t, "rpm"), map[string]int64{hour23: 10})

	unchecked := table{}
	for _, part := range [][]*aggregator.Change{changes[:6], changes[3:8], changes[:2], changes[5:]} {
		for _, b := range aggregator.Book(part, nil) {
			unchecked.apply(b.Update(), true)
		}
	}
	if got := unchecked.hours(t, "rpm")[hour23]; got == 10 {
		t.Errorf("without the check of positions: got %d, want another sum", got)
	}
}

// TestBookMakesGood checks what the first record after a gap is booked with.
func TestBookMakesGood(t *testing.T) {
	t.Parallel()
	base := &aggregator.Base{Position: position(5), Counts: counts{"rpm": 5000, "tpm": 900, "wcu": 9000}}
	for name, tc := range map[string]struct {
		record *aggregator.Record
		want   int64
	}{
		"the difference to what was counted": {
			modified(9, start, acme, counts{"rpm": 8000, "wcu": 9000}, counts{"rpm": 9000}), 4,
		},
		"a refund in the gap": {
			modified(9, start, acme, counts{"rpm": 2000, "wcu": 11000}, counts{"rpm": 3000}), -2,
		},
		"a record that was counted is not the first one": {
			modified(5, start, acme, counts{"rpm": 4000, "wcu": 8000}, counts{"rpm": 5000}), 1,
		},
		"no gap": {
			modified(6, start, acme, counts{"rpm": 5000, "wcu": 9000}, counts{"rpm": 7000}), 2,
		},
		"a new item": {
			modified(9, start, acme, nil, counts{"rpm": 1000, "wcu": 1000}), 1,
		},
		"an item that was created again in the gap": {
			modified(9, start, acme, counts{"rpm": 6000, "wcu": 2000}, counts{"rpm": 7000}), 7,
		},
		"a limit that was added in the gap": {
			modified(9, start, acme, counts{"rpm": 5000, "x": 3000, "wcu": 9000},
				counts{"rpm": 6000, "x": 3000}), 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := table{}
			bases := map[schema.BucketID]*aggregator.Base{acme: base}
			tb.write(aggregator.Book(parse(t, tc.record), bases))
			equal(t, "units", tb.hours(t, "rpm")[hour23], tc.want)
			if name == "a limit that was added in the gap" {
				equal(t, "units of the new limit", tb.hours(t, "x")[hour23], 3)
			}
		})
	}
}

// TestLastCounted checks that the newest of several usage items counts.
func TestLastCounted(t *testing.T) {
	t.Parallel()
	tb := table{}
	tb.write(aggregator.Book(parse(t,
		modified(1, start, acme, nil, counts{"rpm": 1000, "wcu": 1000}),
		modified(2, start.Add(time.Hour), acme, counts{"rpm": 1000}, counts{"rpm": 3000, "wcu": 2000}),
	), nil))
	got := aggregator.LastCounted(0, tb.items())
	if got == nil || got.Position != position(2) || got.Counts.String() != "rpm=3000 wcu=2000" {
		t.Errorf("got %+v", got)
	}
	if got := aggregator.LastCounted(1, tb.items()); got != nil {
		t.Errorf("a shard without records: got %+v", got)
	}
}

// TestBookBeyond64Bits checks that sums that do not fit are split, and not wrong.
func TestBookBeyond64Bits(t *testing.T) {
	t.Parallel()
	var changes []*aggregator.Change
	for i := range 2000 {
		r := modified(i+1, start, acme,
			counts{"rpm": math.MinInt64}, counts{"rpm": math.MaxInt64})
		changes = append(changes, parse(t, r)...)
	}
	bookings := aggregator.Book(changes, nil)
	records := 0
	for _, b := range bookings {
		records += b.Records()
		if got := b.Update().Usage.Counters["rpm"]; got <= 0 {
			t.Errorf("got %d", got)
		}
	}
	if len(bookings) < 2 || records != 2000 {
		t.Errorf("got %d bookings of %d records", len(bookings), records)
	}
}
