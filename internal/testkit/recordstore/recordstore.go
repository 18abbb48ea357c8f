// Package recordstore is a store for tests that lists the usage and the audit that a test gives it.
package recordstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// Store lists what its fields have. Set the fields before the first call.
type Store struct {
	driver.Store

	// Usage has records of hours, in any order.
	Usage []weir.Usage
	Gaps  []weir.UsageGap
	// Events has events, in any order.
	Events []weir.AuditEvent
	// Fails ends every list. Default: no error
	Fails error
}

// ReadUsage implements [driver.UsageReader].
func (s *Store) ReadUsage(
	_ context.Context, q *weir.UsageQuery, _ *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	var found []weir.Usage
	for _, u := range s.Usage {
		if (q.Entity == "" || u.Entity == q.Entity) && (q.Resource == "" || u.Resource == q.Resource) &&
			(q.From.IsZero() || !u.Start.Before(q.From)) && (q.To.IsZero() || u.Start.Before(q.To)) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b weir.Usage) int { return driver.CompareUsage(q, &a, &b) })
	return driver.SumUsage(s.ending(found), q.Window)
}

func (s *Store) ending(found []weir.Usage) iter.Seq2[weir.Usage, error] {
	return func(yield func(weir.Usage, error) bool) {
		for _, u := range found {
			if !yield(u, nil) {
				return
			}
		}
		if s.Fails != nil {
			yield(weir.Usage{}, s.Fails)
		}
	}
}

// UsageGaps implements [driver.UsageReader].
func (s *Store) UsageGaps(
	context.Context, time.Time, *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	return s.Gaps, nil
}

// ReadAudit implements [driver.AuditReader].
func (s *Store) ReadAudit(
	_ context.Context, q *weir.AuditQuery,
) iter.Seq2[weir.AuditEvent, error] {
	owner := cmp.Or(q.At.Entity, "$SYSTEM")
	if q.At.Entity == "" && q.At.Resource != "" {
		owner = "$RESOURCE:" + q.At.Resource
	}
	found := slices.Clone(s.Events)
	slices.SortFunc(found, func(a, b weir.AuditEvent) int { return cmp.Compare(b.ID, a.ID) })
	return func(yield func(weir.AuditEvent, error) bool) {
		for _, e := range found {
			if e.Entity == owner && (q.After == "" || e.ID < q.After) &&
				(q.At.Entity == "" || q.At.Resource == "" || e.Resource == q.At.Resource) &&
				!e.At.Before(q.From) && (q.To.IsZero() || e.At.Before(q.To)) && !yield(e, nil) {
				return
			}
		}
		if s.Fails != nil {
			yield(weir.AuditEvent{}, s.Fails)
		}
	}
}

// New returns a limiter on the store. A nil now reads the machine's clock.
func (s *Store) New(now func() time.Time) (*limiter.Limiter, error) {
	backend, err := memory.Open(nil)
	if err != nil {
		return nil, err
	}
	s.Store = backend
	return limiter.New(s, &limiter.Options{Now: now})
}

// Open is like [Store.New] for a test, which closes the limiter when it ends.
func (s *Store) Open(t testing.TB, now func() time.Time) *limiter.Limiter {
	t.Helper()
	l, err := s.New(now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Hour returns the record of one hour.
func Hour(entity, resource string, start time.Time, units map[string]int64) weir.Usage {
	return weir.Usage{
		Entity: entity, Resource: resource, Window: weir.Hourly, Start: start,
		End: start.Add(time.Hour), Events: int64(len(units)), Units: units, Windows: 1,
	}
}

// Month returns a store with the usage of October 2026: of acme on three models, of which one is
// used from the 12th on, and of team-b on one. On the 20th, from 6:00 to 18:00, usage may be
// missing. The audit has three events of acme, one of them on the resource gpt-4o, and one of the
// system.
func Month() *Store {
	first := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)
	stopped := first.AddDate(0, 0, 19).Add(6 * time.Hour)
	gap := weir.UsageGap{
		From: stopped, To: stopped.Add(12 * time.Hour), Reason: "the server was stopped",
	}
	s := &Store{Gaps: []weir.UsageGap{gap}}
	for hour := range 31 * 24 {
		at := first.Add(time.Duration(hour) * time.Hour)
		if !at.Before(gap.From) && at.Before(gap.To) {
			continue
		}
		busy := int64(12 - max(at.Hour()-12, 12-at.Hour())) // 0 at midnight, 12 at noon
		if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
			busy /= 4
		}
		if busy == 0 {
			continue
		}
		use := func(entity, resource string, share int64) {
			s.Usage = append(s.Usage, Hour(entity, resource, at, map[string]int64{
				"rpm": 10 * busy * share, "tpm": 9_000 * busy * share,
				"usd_micros": 45_000 * busy * share,
			}))
		}
		use("acme", "gpt-4o", 4)
		use("acme", "gpt-4o-mini", 2)
		if at.Day() >= 12 {
			use("acme", "claude-sonnet", 3)
		}
		use("team-b", "gpt-4o", 1)
	}
	for i, e := range []weir.AuditEvent{
		{Entity: "$SYSTEM", Action: "limits_set", Principal: "alice"},
		{Entity: "acme", Action: "entity_created", Principal: "alice"},
		{Entity: "acme", Action: "limits_set", Resource: "_default_", Principal: "bob"},
		{
			Entity: "acme", Action: "limits_set", Resource: "gpt-4o", Principal: "bob",
			Details: map[string]any{
				"limits": []any{map[string]any{"name": "rpm", "capacity": int64(1) << 62}},
				"first":  true,
			},
		},
	} {
		e.At = first.AddDate(0, 0, i)
		e.ID = fmt.Sprintf("01K6EVENT00000000000000%03d", i)
		s.Events = append(s.Events, e)
	}
	return s
}
