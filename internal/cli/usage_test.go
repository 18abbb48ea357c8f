package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// usageStore lists usage, and then an error if it has one.
type usageStore struct {
	driver.Store

	usage []weir.Usage
	fails error
}

func (u *usageStore) ReadAudit(context.Context, weir.Subject, string) iter.Seq2[weir.AuditEvent, error] {
	return func(func(weir.AuditEvent, error) bool) {}
}

func (u *usageStore) ReadUsage(context.Context, weir.Usage) iter.Seq2[weir.Usage, error] {
	return func(yield func(weir.Usage, error) bool) {
		for _, r := range u.usage {
			if !yield(r, nil) {
				return
			}
		}
		if u.fails != nil {
			yield(weir.Usage{}, u.fails)
		}
	}
}

// newUsageStore returns a limiter on a store with two hours of usage.
func newUsageStore(t *testing.T) (*limiter.Limiter, *usageStore) {
	t.Helper()
	hour := time.Date(2026, 1, 31, 7, 0, 0, 0, time.UTC)
	record := func(start time.Time, units map[string]int64) weir.Usage {
		return weir.Usage{
			Entity: "acme", Resource: "gpt-4o", Window: "hourly", Start: start, End: start.Add(time.Hour),
			Events: 1500, Units: units, Windows: 1,
		}
	}
	backend, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	store := &usageStore{Store: backend, usage: []weir.Usage{
		record(hour.Add(time.Hour), map[string]int64{"tpm": 1_000_000, "rpm": 3}),
		record(hour, map[string]int64{"rpm": 4}),
	}}
	lim, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() })
	return lim, store
}

func TestUsageList(t *testing.T) {
	t.Parallel()
	lim, store := newUsageStore(t)
	q := weir.Usage{Entity: "acme", Window: "hourly"}

	const first = `START                 WINDOW  ENTITY  RESOURCE  EVENTS  UNITS
2026-01-31T08:00:00Z  hourly  acme    gpt-4o     1,500  rpm=3 tpm=1,000,000
`
	for size, want := range map[int]string{
		1: first + "… more with a larger --size, or narrow --start and --end\n",
		2: first + "2026-01-31T07:00:00Z  hourly  acme    gpt-4o     1,500  rpm=4\n",
	} {
		found, err := listUsage(t.Context(), lim, q, size)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if found.Table(&b); b.String() != want {
			t.Errorf("size %d: got\n%swant\n%s", size, &b, want)
		}
	}
	store.fails = errors.New("cut")
	if _, err := listUsage(t.Context(), lim, q, 3); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestUsageSummary(t *testing.T) {
	t.Parallel()
	lim, _ := newUsageStore(t)
	total, err := lim.UsageTotal(t.Context(), weir.Usage{Entity: "acme", Window: "hourly"})
	if err != nil {
		t.Fatal(err)
	}
	found := summaryAnswer(newUsageBody(total))
	var b bytes.Buffer
	found.Table(&b)
	want := `windows  2 hourly
from     2026-01-31T07:00:00Z
until    2026-01-31T09:00:00Z
events   3,000

LIMIT      UNITS  PER WINDOW
rpm            7           3
tpm    1,000,000     500,000
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
	text, err := json.Marshal(found.Value)
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"entity":"acme","window":"hourly","window_start":"2026-01-31T07:00:00Z",` +
		`"window_end":"2026-01-31T09:00:00Z","windows":2,"total_events":3000,"units":{"rpm":7,"tpm":1000000}}`
	if string(text) != body {
		t.Errorf("got %s, want %s", text, body)
	}
}
