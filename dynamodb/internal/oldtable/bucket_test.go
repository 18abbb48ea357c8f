package oldtable_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/internal/schema"
)

// item returns an item with a key and numbers.
func item(pk, sk string, numbers map[string]int64) schema.Item {
	i := schema.Key{PK: pk, SK: sk}.Item()
	for name, n := range numbers {
		i[name] = schema.Number(n)
	}
	return i
}

// each returns an item with one limit: 60 units a minute.
func each(limit string, tokens, refilled, burst int64) schema.Item {
	return item("ENTITY#bot", "#BUCKET#gpt-4#"+limit, map[string]int64{
		"tokens_milli": tokens, "last_refill_ms": refilled, "capacity_milli": 60_000,
		"burst_milli": burst, "refill_amount_milli": 60_000, "refill_period_ms": 60_000,
		"total_consumed_milli": 7000,
	})
}

// TestParseBuckets checks that balances are carried over as they are at the time of the refill.
func TestParseBuckets(t *testing.T) {
	t.Parallel()
	all := item("ENTITY#bot", "#BUCKET#gpt-4", map[string]int64{
		"rf": 5000, "b_rpm_tk": -93_001, "b_rpm_cp": 60_000, "b_rpm_bx": 90_000, "b_rpm_ra": 1000,
		"b_rpm_rp": 60_000, "b_rpm_tc": 153_001, "b_wcu_tk": 5,
	})
	present := item("ns/ENTITY#bot", "#BUCKET#gpt-4", map[string]int64{
		"rf": 5000, "b_t_pm_tk": 8, "b_t_pm_cp": 9, "b_t_pm_ra": 1, "b_t_pm_rp": 1, "b_t_pm_tc": 1,
	})
	for name, tc := range map[string]struct {
		items []schema.Item
		want  string
	}{
		"all limits in one item": {
			[]schema.Item{all}, "5000 rpm -93001/90000 1000 in 60000, consumed 0 now, 153001 before",
		},
		"without a burst": {
			[]schema.Item{present}, "5000 t_pm 8/9 1 in 1, consumed 0 now, 1 before",
		},
		"a limit each, refilled at different times": {
			[]schema.Item{each("rpm", 3000, 1000, 60_000), each("day", -500, 3500, 90_000)},
			"3500 day -500/90000 60000 in 60000, consumed 0 now, 7000 before " +
				"rpm 5500/60000 60000 in 60000, consumed 0 now, 7000 before",
		},
		"a limit that was full by then": {
			[]schema.Item{each("rpm", 59_999, 1000, 60_000), each("day", 0, 9000, 90_000)},
			"9000 day 0/90000 60000 in 60000, consumed 0 now, 7000 before " +
				"rpm 60000/60000 60000 in 60000, consumed 0 now, 7000 before",
		},
		"items of an earlier release beside": {
			[]schema.Item{each("rpm", 3000, 9000, 60_000), all},
			"5000 rpm -93001/90000 1000 in 60000, consumed 0 now, 153001 before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := oldtable.ParseBuckets("ns", "bot", "gpt-4", tc.items)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			fmt.Fprint(&got, b.Bucket.RefilledMS)
			for _, l := range b.Bucket.Limits {
				fmt.Fprintf(&got, " %s %d/%d %d in %d, consumed %d now, %d before", l.Name, l.Balance,
					l.Capacity, l.Refill, l.PeriodMS, l.Consumed, b.Consumed[l.Name])
			}
			if got.String() != tc.want {
				t.Errorf("got  %s\nwant %s", got.String(), tc.want)
			}
			if b.Bucket.ID().PK() != "ns/BUCKET#bot#gpt-4#0" || b.Bucket.Writes == nil {
				t.Errorf("got %+v", b.Bucket)
			}
		})
	}
}

func TestParseBucketsRefuses(t *testing.T) {
	t.Parallel()
	broken := each("rpm", 1, 1, 1)
	broken["tokens_milli"] = schema.String("many")
	for want, items := range map[string][]schema.Item{
		"tokens_milli is not a number": {broken},
		"no usable definition":         {item("ENTITY#bot", "#BUCKET#gpt-4#rpm", nil)},
		`limit "rpm" has no usable`:    {item("ENTITY#bot", "#BUCKET#gpt-4", map[string]int64{"b_rpm_tk": 1})},
	} {
		_, err := oldtable.ParseBuckets("ns", "bot", "gpt-4", items)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s", err, want)
		}
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[schema.Key]oldtable.Key{
		{PK: "ENTITY#a", SK: "#META"}:               {Kind: oldtable.Entity, Entity: "a"},
		{PK: "ENTITY#a", SK: "#BUCKET#r/1"}:         {Kind: oldtable.Bucket, Entity: "a", Resource: "r/1"},
		{PK: "ENTITY#a", SK: "#BUCKET#r#l"}:         {Kind: oldtable.Bucket, Entity: "a", Resource: "r", Limit: "l"},
		{PK: "ENTITY#a", SK: "#LIMIT#r#l"}:          {Kind: oldtable.Limit, Entity: "a", Resource: "r", Limit: "l"},
		{PK: "ENTITY#a", SK: "#CONFIG#r"}:           {Kind: oldtable.Config, Entity: "a", Resource: "r"},
		{PK: "ENTITY#a", SK: "#USAGE#r#2026"}:       {Kind: oldtable.Usage, Entity: "a"},
		{PK: "ENTITY#a", SK: "#RESOURCE#r"}:         {Kind: oldtable.Unknown, Entity: "a"},
		{PK: "RESOURCE#r/1", SK: "#LIMIT#l"}:        {Kind: oldtable.Limit, Resource: "r/1", Limit: "l"},
		{PK: "RESOURCE#r", SK: "#CONFIG"}:           {Kind: oldtable.Config, Resource: "r"},
		{PK: "SYSTEM#", SK: "#CONFIG"}:              {Kind: oldtable.Config},
		{PK: "SYSTEM#", SK: "#LIMIT#l"}:             {Kind: oldtable.Limit, Limit: "l"},
		{PK: "SYSTEM#", SK: "#RESOURCES"}:           {Kind: oldtable.Registry},
		{PK: "SYSTEM#", SK: "#VERSION"}:             {Kind: oldtable.Version},
		{PK: "AUDIT#$RESOURCE:a/b", SK: "#AUDIT#1"}: {Kind: oldtable.Audit},
		{PK: "AUDIT#a", SK: "#OTHER"}:               {Kind: oldtable.Unknown},
		{PK: "ns/ENTITY#a", SK: "#BUCKET#r"}:        {Kind: oldtable.Bucket, Namespace: "ns", Entity: "a", Resource: "r"},
		{PK: "ns/ENTITY#a", SK: "#META"}:            {},
		{PK: "ns/BUCKET#a#r#0", SK: "#STATE"}:       {},
		{PK: "_/SYSTEM#", SK: "#VERSION"}:           {},
		{PK: "something", SK: "else"}:               {},
	} {
		if got := oldtable.ParseKey(key); got != want {
			t.Errorf("%s: got %+v, want %+v", key, got, want)
		}
	}
}

// TestParsePlace checks that the item with all limits wins over those with one each, and that the
// highest balance becomes the capacity.
func TestParsePlace(t *testing.T) {
	t.Parallel()
	all := item("ENTITY#bot", "#CONFIG#gpt-4", map[string]int64{
		"l_rpm_cp": 60, "l_rpm_bx": 90, "l_rpm_ra": 60, "l_rpm_rp": 60, "config_version": 1,
	})
	one := func(limit string, capacity, burst int64) schema.Item {
		return item("ENTITY#bot", "#LIMIT#gpt-4#"+limit, map[string]int64{
			"capacity": capacity, "burst": burst, "refill_amount": 5, "refill_period_seconds": 1,
		})
	}
	k := oldtable.Key{Kind: oldtable.Limit, Entity: "bot", Resource: "gpt-4"}
	for name, tc := range map[string]struct {
		all   schema.Item
		each  []schema.Item
		want  string
		items int
	}{
		"one item":  {all, nil, "[{rpm 90 60 60 []}]", 1},
		"each":      {nil, []schema.Item{one("tpm", 7, 7), one("rpm", 1, 3)}, "[{rpm 3 5 1 []} {tpm 7 5 1 []}]", 2},
		"left over": {all, []schema.Item{one("rpm", 1, 3), one("tpm", 7, 7)}, "[{rpm 90 60 60 []} {tpm 7 5 1 []}]", 3},
	} {
		p, err := oldtable.ParsePlace("ns", k, tc.all, tc.each)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(p.Config.Limits); got != tc.want || p.Items() != tc.items ||
			p.Counted != (tc.all != nil) || p.Config.Key() != schema.EntityConfigKey("ns", "bot", "gpt-4") {
			t.Errorf("%s: got %s in %d items of %s", name, got, p.Items(), p.Config.Key())
		}
		for attribute := range p.Config.Item() {
			if strings.HasSuffix(attribute, "_bx") {
				t.Errorf("%s: %s is left", name, attribute)
			}
		}
	}
}
