package limiter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

func TestAuditPages(t *testing.T) {
	t.Parallel()
	ids := []string{
		"01KB00000000000000000000C0", "01KB00000000000000000000B0", "01KB00000000000000000000A0",
	}
	store := &recordStore{fakeStore: newFakeStore()}
	for _, id := range ids {
		store.events = append(store.events, weir.AuditEvent{ID: id})
	}
	l := newRecordLimiter(t, store)
	for size, want := range map[int]int{1: 3, 2: 2, 3: 1, 0: 1} {
		q := &weir.AuditQuery{Size: size}
		var got []string
		pages := 0
		for {
			page, err := l.Audit(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, e := range page.Events {
				got = append(got, e.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if len(got) != 3 || got[0] != ids[0] || got[2] != ids[2] || pages != want {
			t.Errorf("size %d: got %v in %d pages, want %v in %d", size, got, pages, ids, want)
		}
	}
	store.fails = errors.New("cut")
	if _, err := l.Audit(t.Context(), nil); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestAuditRefused(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	with := newRecordLimiter(t, &recordStore{fakeStore: newFakeStore()})
	without := newRecordLimiter(t, newFakeStore())
	for name, c := range map[string]struct {
		l    *limiter.Limiter
		q    *weir.AuditQuery
		want error
	}{
		"the system": {with, nil, nil},
		"an entity": {with, &weir.AuditQuery{
			At: weir.Subject{Entity: "acme", Resource: weir.DefaultResource},
		}, nil},
		"a bad entity": {with, &weir.AuditQuery{At: weir.Subject{Entity: "a#b"}}, weir.Invalid},
		"a bad cursor": {with, &weir.AuditQuery{After: "03"}, weir.Invalid},
		"a bad size":   {with, &weir.AuditQuery{Size: -1}, weir.Invalid},
		"no time":      {with, &weir.AuditQuery{From: day, To: day}, weir.Invalid},
		"some time":    {with, &weir.AuditQuery{From: day, To: day.Add(1)}, nil},
		"no audit":     {without, nil, weir.Unsupported},
	} {
		if _, err := c.l.Audit(t.Context(), c.q); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
