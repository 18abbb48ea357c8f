package aggregator_test

import (
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// held is a limit of an item in whole units, and what the batch took of it.
type held struct {
	name                                   string
	capacity, refill, periodS, left, taken int64
}

func (h held) limit() schema.BucketLimit {
	return schema.BucketLimit{
		Name: h.name, Capacity: h.capacity * 1000, Refill: h.refill * 1000, PeriodMS: h.periodS * 1000,
		Balance: h.left * 1000, Consumed: 5_000_000 + h.taken*1000,
	}
}

// refillCase is an item after one record, and what a refill makes of it.
type refillCase struct {
	limits []held
	shards int // 1 if 0
	// refilled is how long ago rf is. It is 10 s if 0.
	refilled time.Duration
	change   func(b *schema.Bucket)
	// want are the new balances in milli-units; nil if there is no refill.
	want map[string]int64
}

func (tc *refillCase) record() *aggregator.Record {
	refilled := tc.refilled
	if refilled == 0 {
		refilled = 10 * time.Second
	}
	b := &schema.Bucket{
		Namespace: acme.Namespace, Entity: acme.Entity, Resource: acme.Resource,
		RefilledMS: start.Add(-refilled).UnixMilli(), Shards: max(1, tc.shards),
	}
	for _, h := range tc.limits {
		l := h.limit()
		if h.name == schema.WritesLimit {
			b.Writes = &l
			continue
		}
		b.Limits = append(b.Limits, l)
	}
	if tc.change != nil {
		tc.change(b)
	}
	r := &aggregator.Record{
		Position: position(1), At: start.Add(-time.Second), Kind: aggregator.Modified,
		Key: acme.Key(), Old: b.Item(), New: b.Item(),
	}
	for _, h := range tc.limits {
		if name := schema.BucketAttribute(h.name, schema.FieldConsumed); r.Old[name] != nil {
			r.Old[name] = schema.Number(h.limit().Consumed - h.taken*1000)
		}
	}
	return r
}

func (tc *refillCase) run(t *testing.T) {
	t.Helper()
	refills := aggregator.Refills([]*aggregator.Record{tc.record()}, start)
	if len(refills) == 0 {
		if tc.want != nil {
			t.Errorf("got no refill, want %v", tc.want)
		}
		return
	}
	refill := refills[0]
	equal(t, "time", refill.AtMS, start.UnixMilli())
	equal(t, "refills", len(refills), 1)
	got := make(map[string]int64)
	for _, c := range refill.Credits {
		got[c.Limit.Name] = c.Limit.Balance + c.Milli
	}
	equal(t, "limits", len(got), len(tc.want))
	for name, milli := range got {
		equal(t, name, milli, tc.want[name])
	}
}

// TestRefillLimits checks which limits are credited, and how much. 600 a minute are 10 a second.
func TestRefillLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]refillCase{
		"the gain since the last refill": {
			limits: []held{{"rpm", 600, 600, 60, 3, 40}}, want: map[string]int64{"rpm": 103_000},
		},
		"all but a second's gain of a full bucket": {
			limits: []held{{"rpm", 600, 600, 60, 3, 40}}, refilled: time.Hour,
			want: map[string]int64{"rpm": 590_000},
		},
		"as much left as was taken": {limits: []held{{"rpm", 600, 600, 60, 40, 40}}},
		"a milli-unit less left than was taken": {
			limits: []held{{"rpm", 600, 600, 60, 40, 40}},
			change: func(b *schema.Bucket) { b.Limits[0].Balance-- },
			want:   map[string]int64{"rpm": 139_999},
		},
		"nothing taken":  {limits: []held{{"rpm", 600, 600, 60, 0, 0}}},
		"a refund":       {limits: []held{{"rpm", 600, 600, 60, -5, -20}}},
		"nothing gained": {limits: []held{{"day", 10, 10, 86400, 0, 1}}, refilled: time.Millisecond},
		"a debt": {
			limits: []held{{"rpm", 600, 600, 60, -300, 40}}, want: map[string]int64{"rpm": -200_000},
		},
		"a debt that nobody takes from": {limits: []held{{"rpm", 600, 600, 60, -300, 0}}},
		// Defect S2 of the predecessor: the limit with enough lost its refill.
		"slow and fast, one due": {
			limits: []held{{"day", 8640, 8640, 86400, 500, 1}, {"rpm", 600, 600, 60, 3, 40}},
			want:   map[string]int64{"day": 501_000, "rpm": 103_000},
		},
		"a full one beside an empty one": {
			limits: []held{{"rpm", 600, 600, 60, 0, 40}, {"tpm", 6000, 6000, 60, 6000, 1}},
			want:   map[string]int64{"rpm": 100_000, "tpm": 6_000_000},
		},
		"one above its capacity": {
			limits: []held{{"rpm", 600, 600, 60, 0, 40}, {"tpm", 6000, 6000, 60, 7000, 1}},
			want:   map[string]int64{"rpm": 100_000, "tpm": 7_000_000},
		},
		"one that is nearly full": {
			limits: []held{{"rpm", 600, 600, 60, 0, 40}, {"tpm", 6000, 6000, 60, 5850, 1}},
			want:   map[string]int64{"rpm": 100_000, "tpm": 5_900_000},
		},
		"only a limit that nobody takes from is low": {
			limits: []held{{"rpm", 600, 600, 60, 300, 1}, {"tpm", 6000, 6000, 60, 0, 0}},
		},
		"a limit that fills up within a second": {
			limits: []held{{"rps", 10, 10, 1, 0, 40}},
		},
		"another one beside it": {
			limits: []held{{"rpm", 600, 600, 60, 0, 40}, {"rps", 10, 10, 1, 0, 40}},
		},
		"names with other characters": {
			limits: []held{{"a-b.c", 600, 600, 60, 3, 40}, {"a_b", 600, 600, 60, 300, 40}},
			want:   map[string]int64{"a-b.c": 103_000, "a_b": 400_000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run(t)
		})
	}
}

// TestRefillShards checks that a shard is credited its share, and the count of writes in full.
func TestRefillShards(t *testing.T) {
	t.Parallel()
	rpm := held{"rpm", 600, 600, 60, 3, 40}
	writes := held{schema.WritesLimit, 1000, 1000, 1, 400, 40}
	for name, tc := range map[string]refillCase{
		"two":  {limits: []held{rpm}, shards: 2, want: map[string]int64{"rpm": 53_000}},
		"four": {limits: []held{rpm}, shards: 4, want: map[string]int64{"rpm": 28_000}},
		"four, full": {
			limits: []held{rpm}, shards: 4, refilled: time.Hour, want: map[string]int64{"rpm": 147_500},
		},
		"four, with writes": {
			limits: []held{rpm, writes}, shards: 4,
			want: map[string]int64{"rpm": 28_000, "wcu": 1_000_000},
		},
		"writes alone are due": {
			limits: []held{{"rpm", 6000, 6000, 60, 3000, 40}, {schema.WritesLimit, 1000, 1000, 1, 30, 40}},
			want:   map[string]int64{"rpm": 4_000_000, "wcu": 1_000_000},
		},
		"a share of less than a unit": {
			limits: []held{{"day", 20, 20, 86400, 0, 1}}, shards: 32, refilled: time.Hour,
			// 625 milli-units a day are 26 an hour.
			want: map[string]int64{"day": 26},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.run(t)
		})
	}
}

// TestRefillKnowsMoreShards checks that the largest shard count of a batch holds, as for the
// store.
func TestRefillKnowsMoreShards(t *testing.T) {
	t.Parallel()
	one := refillCase{limits: []held{{"rpm", 600, 600, 60, 3, 40}}, shards: 2}
	four := refillCase{limits: []held{{"rpm", 600, 600, 60, 100, 1}}, shards: 4}
	old, newer := one.record(), four.record()
	shard1 := acme
	shard1.Shard = 1
	old.Key = shard1.Key()
	for name, value := range shard1.Key().Item() {
		old.Old[name], old.New[name] = value, value
	}
	refills := aggregator.Refills([]*aggregator.Record{old, newer}, start)
	if len(refills) != 1 || refills[0].Credits[0].Milli != 25_000 || refills[0].Item.Shards != 2 {
		t.Errorf("got %+v", refills)
	}
}

// TestRefillNotJudged checks that items with anything by which weir does not judge get no refill.
func TestRefillNotJudged(t *testing.T) {
	t.Parallel()
	ms := start.UnixMilli()
	extra := func(name string, value int64) func(b *schema.Bucket) {
		return func(b *schema.Bucket) { b.Extra = schema.Item{name: schema.Number(value)} }
	}
	limits := []held{{"rpm", 600, 600, 60, 3, 40}, {schema.WritesLimit, 1000, 1000, 1, 400, 40}}
	for name, change := range map[string]func(b *schema.Bucket){
		"disabled": func(b *schema.Bucket) { b.Disabled = true },
		"disabled, but false": func(b *schema.Bucket) {
			b.Extra = schema.Item{schema.AttrDisabled: schema.Bool(false)}
		},
		"vu 0":           func(b *schema.Bucket) { b.ValidUntil = new(int64(0)) },
		"vu now":         func(b *schema.Bucket) { b.ValidUntil = new(ms) },
		"ttl now":        func(b *schema.Bucket) { b.TTL = start.Unix() },
		"stub":           func(b *schema.Bucket) { b.Stub = true },
		"refilled now":   func(b *schema.Bucket) { b.RefilledMS = ms },
		"refilled later": func(b *schema.Bucket) { b.RefilledMS = ms + 60_000 },
		"schedule": func(b *schema.Bucket) {
			b.Extra = schema.Item{schema.AttrSched: schema.String("1;x")}
		},
		"bypass":            extra(schema.AttrBypass, 5),
		"soft":              extra("b_rpm_soft", 5),
		"session window":    extra("b_rpm_ws", 5),
		"top-up":            extra("b_rpm_tu", 5),
		"window of writes":  extra("b_wcu_ws", 5),
		"no refill":         func(b *schema.Bucket) { b.Limits[0].Refill = 0 },
		"incomplete limit":  extra("b_tpm_tk", 5),
		"incomplete writes": func(b *schema.Bucket) { b.Writes = nil; extra("b_wcu_tk", 5)(b) },
		"malformed": func(b *schema.Bucket) {
			b.Extra = schema.Item{schema.AttrVU: schema.String("x")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			(&refillCase{limits: limits, change: change}).run(t)
		})
	}
	(&refillCase{limits: limits, change: func(b *schema.Bucket) {
		b.ValidUntil, b.TTL = new(ms+1), start.Unix()+1
		b.Extra = schema.Item{"tag": schema.Number(1)}
	}, want: map[string]int64{"rpm": 103_000, "wcu": 1_000_000}}).run(t)
}

// TestRefillRecords checks which records of a batch count.
func TestRefillRecords(t *testing.T) {
	t.Parallel()
	rpm := func(left, taken int64) *aggregator.Record {
		return (&refillCase{limits: []held{{"rpm", 600, 600, 60, left, taken}}}).record()
	}
	at := func(r *aggregator.Record, ago time.Duration) *aggregator.Record {
		r.At = start.Add(-ago)
		return r
	}
	removed := rpm(3, 40)
	removed.Kind, removed.New = aggregator.Removed, nil
	created := rpm(30, 20)
	created.Kind, created.Old = aggregator.Inserted, nil
	created.New["b_rpm_tc"] = schema.Number(20_000)
	other := rpm(3, 40)
	other.Key.SK = "#META"
	for name, tc := range map[string]struct {
		records []*aggregator.Record
		want    int64 // credited; -1 for no refill
	}{
		"the takes add up": {[]*aggregator.Record{rpm(90, 30), rpm(60, 30), rpm(30, 30)}, 100_000},
		"a refund counts against them": {
			[]*aggregator.Record{rpm(90, 30), rpm(60, 30), rpm(70, -10)}, -1,
		},
		"a minute old":             {[]*aggregator.Record{at(rpm(3, 40), time.Minute)}, 100_000},
		"older":                    {[]*aggregator.Record{at(rpm(3, 40), time.Minute+1)}, -1},
		"older takes do not count": {[]*aggregator.Record{at(rpm(90, 300), time.Hour), rpm(30, 20)}, -1},
		"later than now":           {[]*aggregator.Record{at(rpm(3, 40), -time.Second)}, 100_000},
		"deleted":                  {[]*aggregator.Record{rpm(3, 40), removed}, -1},
		"deleted and created":      {[]*aggregator.Record{rpm(3, 40), removed, created}, -1},
		"created":                  {[]*aggregator.Record{created, rpm(10, 20)}, 100_000},
		"another item":             {[]*aggregator.Record{other}, -1},
		"none":                     {nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := int64(-1)
			if refills := aggregator.Refills(tc.records, start); len(refills) > 0 {
				got = refills[0].Credits[0].Milli
			}
			equal(t, "credit", got, tc.want)
		})
	}
}

// TestRefillLeast checks that a limit that was full may not have lost more than a second's gain
// since its record.
func TestRefillLeast(t *testing.T) {
	t.Parallel()
	tc := refillCase{limits: []held{
		{"rpm", 600, 600, 60, 0, 40}, {"tpm", 6000, 6000, 60, 5850, 1}, {"wcu", 1000, 1000, 1, 400, 40},
	}}
	want := map[string]int64{"rpm": math.MinInt64, "tpm": 5_750_000, "wcu": math.MinInt64}
	for _, c := range aggregator.Refills([]*aggregator.Record{tc.record()}, start)[0].Credits {
		equal(t, c.Limit.Name, c.Least, want[c.Limit.Name])
	}
}

// TestRefillExtremes checks numbers near the ends of 64 bits.
func TestRefillExtremes(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64
	set := func(capacity, refill, period, balance int64) func(b *schema.Bucket) {
		return func(b *schema.Bucket) {
			b.Limits[0].Capacity, b.Limits[0].Refill = capacity, refill
			b.Limits[0].PeriodMS, b.Limits[0].Balance = period, balance
		}
	}
	limits := []held{{"rpm", 600, 600, 60, 0, 40}}
	for name, tc := range map[string]refillCase{
		"all the largest": {change: set(most, most, most, 0), want: map[string]int64{"rpm": 10_000}},
		"the fastest":     {change: set(most, most, 1, 0)},
		"the deepest debt, slowly": {
			change: set(most, most/1000, 1000, math.MinInt64),
			want:   map[string]int64{"rpm": math.MinInt64 + most/1000*10},
		},
		// It gains more than a credit can hold, and waits for a client.
		"the deepest debt, fast": {change: set(most, most/2, 1000, math.MinInt64), refilled: time.Hour},
		"refilled in the beginning": {
			change:   func(b *schema.Bucket) { b.RefilledMS = math.MinInt64 },
			refilled: time.Hour, want: map[string]int64{"rpm": 590_000},
		},
		"no capacity": {change: set(0, 1000, 1000, -5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.limits = limits
			tc.run(t)
		})
	}
	r := (&refillCase{limits: limits, want: map[string]int64{"rpm": 100_000}}).record()
	r.Old["b_rpm_tc"], r.New["b_rpm_tc"] = schema.Number(math.MinInt64), schema.Number(most)
	if got := aggregator.Refills([]*aggregator.Record{r, r}, start); len(got) != 1 {
		t.Errorf("takes beyond 64 bits: got %v", got)
	}
	r.Old["b_rpm_tc"], r.New["b_rpm_tc"] = r.New["b_rpm_tc"], r.Old["b_rpm_tc"]
	if got := aggregator.Refills([]*aggregator.Record{r, r}, start); len(got) != 0 {
		t.Errorf("refunds beyond 64 bits: got %v", got)
	}
	r.New["b_rpm_tc"] = number("1e400")
	if got := aggregator.Refills([]*aggregator.Record{r}, start); len(got) != 0 {
		t.Errorf("a malformed count: got %v", got)
	}
}

// TestRefilled checks which records are of refills alone.
func TestRefilled(t *testing.T) {
	t.Parallel()
	record := func(taken int64, rf bool) *aggregator.Record {
		r := (&refillCase{limits: []held{
			{"rpm", 600, 600, 60, 3, taken}, {schema.WritesLimit, 1000, 1000, 1, 400, 0},
		}}).record()
		if rf {
			r.New[schema.AttrRF] = schema.Number(start.UnixMilli())
		}
		return r
	}
	inserted := record(0, true)
	inserted.Kind, inserted.Old = aggregator.Inserted, nil
	written := record(0, true)
	written.New["b_wcu_tc"] = schema.Number(7_000_000)
	added := record(0, true)
	delete(added.Old, "b_rpm_tc")
	for name, tc := range map[string]struct {
		r    *aggregator.Record
		want bool
	}{
		"a refill":                        {record(0, true), true},
		"one with a take":                 {record(1, true), false},
		"one with a refund":               {record(-1, true), false},
		"one that a client's write makes": {written, false},
		"one with a new limit":            {added, false},
		"rf did not move":                 {record(0, false), false},
		"a new item":                      {inserted, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "refilled", aggregator.Refilled(tc.r), tc.want)
		})
	}
}
