package aggregator_test

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestParseFaults checks that bad records are left out with a reason.
func TestParseFaults(t *testing.T) {
	t.Parallel()
	good := func() *aggregator.Record {
		return modified(1, start, acme, counts{"rpm": 1000}, counts{"rpm": 2000, "tpm": 3000})
	}
	tc := schema.BucketAttribute("rpm", schema.FieldConsumed)
	for name, c := range map[string]struct {
		change func(r *aggregator.Record)
		faults int
		counts bool
	}{
		"good":                    {func(*aggregator.Record) {}, 0, true},
		"no image":                {func(r *aggregator.Record) { r.New = nil }, 1, false},
		"no old image":            {func(r *aggregator.Record) { r.Old = nil }, 1, false},
		"an old image too many":   {func(r *aggregator.Record) { r.Kind = aggregator.Inserted }, 1, false},
		"an unknown kind":         {func(r *aggregator.Record) { r.Kind = 9 }, 1, false},
		"no time":                 {func(r *aggregator.Record) { r.At = time.Time{} }, 1, false},
		"no position":             {func(r *aggregator.Record) { r.Position = "" }, 1, false},
		"another key":             {func(r *aggregator.Record) { r.New[schema.AttrPK] = schema.String("x") }, 1, false},
		"a count that is text":    {func(r *aggregator.Record) { r.New[tc] = schema.String("2") }, 1, true},
		"an old count of 9.5":     {func(r *aggregator.Record) { r.Old[tc] = schema.Null() }, 1, true},
		"a removal":               {func(r *aggregator.Record) { r.Kind = aggregator.Removed }, 0, false},
		"an item of the registry": {func(r *aggregator.Record) { r.Key = schema.VersionKey() }, 0, false},
		"a key of a newer schema": {
			func(r *aggregator.Record) { r.Key.PK = "ns/BUCKET#acme" }, 0, false,
		},
		"a limit named ttl": {func(r *aggregator.Record) {
			r.New[schema.BucketAttribute("ttl", schema.FieldConsumed)] = schema.Number(5000)
		}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			c.change(r)
			change, faults := aggregator.Parse(r)
			if (change != nil) != c.counts || len(faults) != c.faults {
				t.Errorf("got %+v and %v", change, faults)
			}
			for _, f := range faults {
				if f.Error() == "" || f.Reason == "" {
					t.Errorf("got %+v without a reason", f)
				}
			}
			if change != nil && change.After["tpm"] != 3000 {
				t.Errorf("the other limit: got %v", change.After)
			}
		})
	}
}

// TestParseOverdrawn checks that a write that leaves a soft limit in debt is counted.
func TestParseOverdrawn(t *testing.T) {
	t.Parallel()
	r := modified(1, start, acme, counts{"rpm": 1000}, counts{"rpm": 2000})
	r.New[schema.BucketAttribute("rpm", schema.FieldSoft)] = schema.Number(1)
	r.New[schema.BucketAttribute("rpm", schema.FieldBalance)] = schema.Number(-500)
	u := aggregator.Book(parse(t, r), nil)[0].Update().Usage
	equal(t, "overdrawn", u.Overdrawn["rpm"], 1)
}

// TestPosition checks what a position may be made of.
func TestPosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ label, sequence string }{
		{"", "1"}, {"a#b", "1"}, {label, ""}, {label, "-1"}, {label, "1x"},
		{label, "12345678901234567890123456789012345678901"},
	} {
		if p, err := aggregator.NewPosition(c.label, c.sequence); err == nil {
			t.Errorf("%q and %q: got %q, want an error", c.label, c.sequence, p)
		}
	}
	if position(9) >= position(10) || position(99999) >= position(100000) {
		t.Error("positions do not sort as numbers")
	}
	later, err := aggregator.NewPosition("2026-03-05T00:00:00.000", "1")
	if err != nil || later < position(100000) {
		t.Errorf("a later stream: got %q, %v", later, err)
	}
}

// TestForeign checks which writes of usage items are another aggregator's.
func TestForeign(t *testing.T) {
	t.Parallel()
	hour := schema.NewUsage(acme, weir.Hourly, start)
	day := schema.NewUsage(acme, weir.Daily, start)
	with := func(u *schema.Usage, events int64, position string) schema.Item {
		v := *u
		v.Events = events
		item := v.Item()
		if position != "" {
			item[schema.PositionAttribute(0)] = schema.String(position)
		}
		return item
	}
	for name, c := range map[string]struct {
		key      schema.Key
		old, new schema.Item
		want     bool
	}{
		"new, by weir":        {hour.Key(), nil, with(hour, 1, "a"), false},
		"changed, by weir":    {hour.Key(), with(hour, 1, "a"), with(hour, 2, "b"), false},
		"new, by another":     {hour.Key(), nil, with(hour, 1, ""), true},
		"changed, by another": {hour.Key(), with(hour, 1, "a"), with(hour, 2, "a"), true},
		"a day of weir":       {day.Key(), nil, with(day, 3, ""), false},
		"a bucket":            {acme.Key(), nil, image(acme, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &aggregator.Record{Kind: aggregator.Modified, Key: c.key, Old: c.old, New: c.new}
			equal(t, "foreign", aggregator.Foreign(r), c.want)
		})
	}
}
