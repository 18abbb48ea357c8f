package limiter_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// recordStore is a store with audit events and usage, whose lists end with an error if the test
// sets one.
type recordStore struct {
	*fakeStore
	events []weir.AuditEvent
	usage  []weir.Usage
	gaps   []weir.UsageGap
	fails  error
}

func (r *recordStore) ReadAudit(
	_ context.Context, q *weir.AuditQuery,
) iter.Seq2[weir.AuditEvent, error] {
	return func(yield func(weir.AuditEvent, error) bool) {
		for _, e := range r.events {
			if (q.After == "" || e.ID < q.After) && !yield(e, nil) {
				return
			}
		}
		if r.fails != nil {
			yield(weir.AuditEvent{}, r.fails)
		}
	}
}

func (r *recordStore) ReadUsage(
	_ context.Context, q *weir.UsageQuery, _ *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	return driver.SumUsage(func(yield func(weir.Usage, error) bool) {
		for _, u := range r.usage {
			if !yield(u, nil) {
				return
			}
		}
		if r.fails != nil {
			yield(weir.Usage{}, r.fails)
		}
	}, q.Window)
}

func (r *recordStore) UsageGaps(
	context.Context, time.Time, *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	return r.gaps, nil
}

func newRecordLimiter(t *testing.T, store driver.Store) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// usedHour returns a record of an hour of acme, or of another entity.
func usedHour(entity, resource string, start time.Time, rpm int64) weir.Usage {
	return weir.Usage{
		Entity: entity, Resource: resource, Window: weir.Hourly, Start: start, End: start.Add(time.Hour),
		Events: 2, Units: map[string]int64{"rpm": rpm, "tpm": 100 * rpm}, Windows: 1,
	}
}

// usageDay is the day of most records in these tests.
var usageDay = time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)

// pagesOf reads all pages of a query and writes each record as a line.
func pagesOf(t *testing.T, l *limiter.Limiter, q weir.UsageQuery) (lines []string, pages int) {
	t.Helper()
	for {
		page, err := l.Usage(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, u := range page.Usage {
			lines = append(lines, fmt.Sprint(u.Entity, " ", u.Resource, " ", u.Start.Format(time.RFC3339), " ",
				u.Events, " ", u.Units))
		}
		if q.After = page.Next; q.After == "" {
			return lines, pages
		}
	}
}

func TestUsagePages(t *testing.T) {
	t.Parallel()
	hour := func(n int) time.Time { return usageDay.Add(time.Duration(n) * time.Hour) }
	ofEntity := &recordStore{fakeStore: newFakeStore(), usage: []weir.Usage{
		usedHour("acme", "claude", hour(22), 1), usedHour("acme", "claude", hour(25), 2),
		usedHour("acme", "gpt-4o", hour(0), 3), usedHour("acme", "gpt-4o", hour(23), -4),
	}}
	ofResource := &recordStore{fakeStore: newFakeStore(), usage: []weir.Usage{
		usedHour("acme", "gpt-4o", hour(0), 1), usedHour("bot", "gpt-4o", hour(0), 2),
		usedHour("acme", "gpt-4o", hour(1), 4), usedHour("bot", "gpt-4o", hour(24), 8),
	}}
	for _, c := range []struct {
		name  string
		store *recordStore
		q     weir.UsageQuery
		want  []string
	}{
		{"hours of an entity", ofEntity, weir.UsageQuery{Entity: "acme"}, []string{
			"acme claude 2026-01-31T22:00:00Z 2 map[rpm:1 tpm:100]",
			"acme claude 2026-02-01T01:00:00Z 2 map[rpm:2 tpm:200]",
			"acme gpt-4o 2026-01-31T00:00:00Z 2 map[rpm:3 tpm:300]",
			"acme gpt-4o 2026-01-31T23:00:00Z 2 map[rpm:-4 tpm:-400]",
		}},
		{"days of an entity", ofEntity, weir.UsageQuery{Entity: "acme", Window: weir.Daily}, []string{
			"acme claude 2026-01-31T00:00:00Z 2 map[rpm:1 tpm:100]",
			"acme claude 2026-02-01T00:00:00Z 2 map[rpm:2 tpm:200]",
			"acme gpt-4o 2026-01-31T00:00:00Z 4 map[rpm:-1 tpm:-100]",
		}},
		{"months of one limit", ofEntity, weir.UsageQuery{
			Entity: "acme", Window: weir.Monthly, Limit: "rpm",
		}, []string{
			"acme claude 2026-01-01T00:00:00Z 2 map[rpm:1]",
			"acme claude 2026-02-01T00:00:00Z 2 map[rpm:2]",
			"acme gpt-4o 2026-01-01T00:00:00Z 4 map[rpm:-1]",
		}},
		{"another limit", ofEntity, weir.UsageQuery{Entity: "acme", Limit: "usd"}, nil},
		{"days of a resource", ofResource, weir.UsageQuery{Resource: "gpt-4o", Window: weir.Daily}, []string{
			"acme gpt-4o 2026-01-31T00:00:00Z 4 map[rpm:5 tpm:500]",
			"bot gpt-4o 2026-01-31T00:00:00Z 2 map[rpm:2 tpm:200]",
			"bot gpt-4o 2026-02-01T00:00:00Z 2 map[rpm:8 tpm:800]",
		}},
	} {
		l := newRecordLimiter(t, c.store)
		for _, size := range []int{1, 2, 3, 0} {
			c.q.Size = size
			got, pages := pagesOf(t, l, c.q)
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s in pages of %d: got %q, want %q", c.name, size, got, c.want)
			}
			if want := max(1, (len(c.want)+max(size, 1)-1)/max(size, 1)); size > 0 && pages != want {
				t.Errorf("%s in pages of %d: got %d pages, want %d", c.name, size, pages, want)
			}
		}
	}
}

func TestUsageGaps(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return usageDay.AddDate(0, 0, n) }
	store := &recordStore{fakeStore: newFakeStore(), gaps: []weir.UsageGap{
		{To: at(1), Reason: "old"}, {From: at(3), To: at(4), Reason: "cut"}, {From: at(6), To: at(7), Reason: "late"},
	}}
	l := newRecordLimiter(t, store)
	for _, c := range []struct {
		from, to time.Time
		want     string
	}{
		{time.Time{}, time.Time{}, "old cut late "},
		{at(1), time.Time{}, "cut late "},
		{time.Time{}, at(3), "old "},
		{at(3), at(6), "cut "},
		{at(4), at(6), ""},
	} {
		page, err := l.Usage(t.Context(), &weir.UsageQuery{Entity: "acme", From: c.from, To: c.to})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, g := range page.Gaps {
			got.WriteString(g.Reason + " ")
		}
		if got.String() != c.want {
			t.Errorf("from %v to %v: got %q, want %q", c.from, c.to, &got, c.want)
		}
	}
}

func TestUsageRefused(t *testing.T) {
	t.Parallel()
	store := &recordStore{fakeStore: newFakeStore(), usage: []weir.Usage{
		usedHour("acme", "gpt-4o", usageDay, 1), usedHour("acme", "gpt-4o", usageDay.Add(time.Hour), 1),
	}}
	with, without := newRecordLimiter(t, store), newRecordLimiter(t, newFakeStore())
	page, err := with.Usage(t.Context(), &weir.UsageQuery{Entity: "acme", Size: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("got %+v, %v; want a first page of two", page, err)
	}
	cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, c := range map[string]struct {
		l     *limiter.Limiter
		q     *weir.UsageQuery
		field string // of the error; empty for none
	}{
		"an entity":           {with, &weir.UsageQuery{Entity: "acme"}, ""},
		"a resource":          {with, &weir.UsageQuery{Resource: "gpt-4o", Window: weir.Daily}, ""},
		"nothing":             {with, nil, "entity"},
		"a bad entity":        {with, &weir.UsageQuery{Entity: "a b"}, "entity"},
		"a bad resource":      {with, &weir.UsageQuery{Resource: "9 "}, "resource"},
		"a bad limit":         {with, &weir.UsageQuery{Entity: "acme", Limit: "-"}, "limit"},
		"a bad window":        {with, &weir.UsageQuery{Entity: "acme", Window: "weekly"}, "window"},
		"no time":             {with, &weir.UsageQuery{Entity: "acme", From: usageDay, To: usageDay}, "to"},
		"some time":           {with, &weir.UsageQuery{Entity: "acme", From: usageDay, To: usageDay.Add(1)}, ""},
		"a century":           {with, &weir.UsageQuery{Entity: "acme", To: usageDay.AddDate(100, 0, 0)}, ""},
		"the year 10000":      {with, &weir.UsageQuery{Entity: "acme", To: usageDay.AddDate(7974, 0, 0)}, "to"},
		"the last instant":    {with, &weir.UsageQuery{Entity: "acme", To: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}, ""},
		"a huge page":         {with, &weir.UsageQuery{Entity: "acme", Size: 1001}, "size"},
		"a negative page":     {with, &weir.UsageQuery{Entity: "acme", Size: -1}, "size"},
		"the next page":       {with, &weir.UsageQuery{Entity: "acme", After: page.Next}, ""},
		"of another entity":   {with, &weir.UsageQuery{Entity: "bot", After: page.Next}, "after"},
		"of another resource": {with, &weir.UsageQuery{Entity: "acme", Resource: "m", After: page.Next}, "after"},
		"of another window":   {with, &weir.UsageQuery{Entity: "acme", Window: weir.Daily, After: page.Next}, "after"},
		"of another time":     {with, &weir.UsageQuery{Entity: "acme", From: usageDay.Add(time.Hour), After: page.Next}, "after"},
		"no cursor":           {with, &weir.UsageQuery{Entity: "acme", After: "nonsense"}, "after"},
		"a short cursor":      {with, &weir.UsageQuery{Entity: "acme", After: cursor("hourly 0 m")}, "after"},
		"no number":           {with, &weir.UsageQuery{Entity: "acme", After: cursor("hourly x m acme")}, "after"},
		"no hour":             {with, &weir.UsageQuery{Entity: "acme", After: cursor("hourly 7 m acme")}, "after"},
		"a far time":          {with, &weir.UsageQuery{Entity: "acme", After: cursor("hourly 9000000000000000000 m acme")}, "after"},
		"another store":       {without, &weir.UsageQuery{Entity: "acme"}, "store"},
	} {
		_, err := c.l.Usage(t.Context(), c.q)
		e, _ := errors.AsType[*weir.Error](err)
		switch {
		case c.field == "" && err != nil, c.field != "" && (e == nil || e.Field != c.field):
			t.Errorf("%s: got %v, want a mistake in %q", name, err, c.field)
		case c.field == "store" && e.Code != weir.Unsupported, c.field != "" && c.field != "store" && e.Code != weir.Invalid:
			t.Errorf("%s: got code %s", name, e.Code)
		}
	}
	store.fails = errors.New("cut")
	if _, err := with.Usage(t.Context(), &weir.UsageQuery{Entity: "acme"}); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestUsageSumsOverflow(t *testing.T) {
	t.Parallel()
	store := &recordStore{fakeStore: newFakeStore(), usage: []weir.Usage{
		usedHour("acme", "gpt-4o", usageDay, 1), usedHour("acme", "gpt-4o", usageDay.Add(time.Hour), 1),
	}}
	store.usage[0].Units = map[string]int64{"rpm": math.MaxInt64}
	_, err := newRecordLimiter(t, store).Usage(t.Context(), &weir.UsageQuery{Entity: "acme", Window: weir.Daily})
	if !errors.Is(err, weir.Unsupported) {
		t.Errorf("a sum beyond 64 bits: got %v, want unsupported", err)
	}
}

func TestUsageWindows(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 28, 23, 30, 0, 0, time.FixedZone("west", -3600)) // 00:30 in March, in UTC
	for w, want := range map[weir.UsageWindow][2]string{
		weir.Hourly:  {"2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z"},
		weir.Daily:   {"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		weir.Monthly: {"2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"},
	} {
		got := [2]string{w.Start(at).Format(time.RFC3339), w.End(at).Format(time.RFC3339)}
		if got != want || !w.Valid() {
			t.Errorf("%s: got %v, want %v", w, got, want)
		}
	}
}
