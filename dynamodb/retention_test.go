package dynamodb

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

// TestRetention checks that a change of some settings leaves the other settings, the limits and the
// policy as they are, and that changes of those leave the settings.
func TestRetention(t *testing.T) {
	t.Parallel()
	s := configured(t)
	settings := func(usage, audit, multiplier *int64) weir.Retention {
		return weir.Retention{UsageDays: usage, AuditDays: audit, TTLMultiplier: multiplier}
	}
	change := func(r weir.Retention) func() error {
		return func() error { return s.WriteRetention(t.Context(), configNow, &r) }
	}
	limits := func(limits ...weir.Limit) func() error {
		return func() error { return s.WriteLimits(t.Context(), configNow, weir.Subject{}, limits) }
	}
	all := settings(new(int64(7)), new(int64(30)), new(int64(0)))
	for _, step := range []struct {
		name   string
		do     func() error
		want   weir.Retention
		limits int
		policy weir.Policy
	}{
		{"nothing set", func() error { return nil }, weir.Retention{}, 0, ""},
		{"on no item", change(settings(new(int64(7)), nil, nil)), settings(new(int64(7)), nil, nil), 0, ""},
		{"others", change(settings(nil, new(int64(30)), new(int64(0)))), all, 0, ""},
		{"set limits", limits(rate("rpm", 5)), all, 1, ""},
		{"set policy", func() error { return s.WritePolicy(t.Context(), configNow, weir.Allow) }, all, 1, weir.Allow},
		{"delete limits", limits(), all, 0, weir.Allow},
		{"set limits again", limits(rate("rpm", 5), rate("tpm", 5)), all, 2, weir.Allow},
		{"change one", change(settings(new(int64(8)), nil, nil)),
			settings(new(int64(8)), new(int64(30)), new(int64(0))), 2, weir.Allow},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got, err := s.ReadRetention(t.Context())
		if err != nil || !got.Same(step.want) {
			t.Errorf("%s: got %+v, %v, want %+v", step.name, got, err, step.want)
		}
		c, err := s.ReadConfig(t.Context(), weir.Subject{}, true)
		n := 0
		if err == nil && len(c.Levels) > 0 {
			n = len(c.Levels[0].Limits)
		}
		if err != nil || n != step.limits || c.OnUnavailable != step.policy {
			t.Errorf("%s: got %+v, %v, want %d limits and %q", step.name, c, err, step.limits, step.policy)
		}
	}
}

// TestRetentionAudit checks the events of the changes: one for each change that changes something,
// kept by the new retention.
func TestRetentionAudit(t *testing.T) {
	t.Parallel()
	s := configured(t)
	now := configNow
	for _, days := range []int64{5, 5, 6} {
		now = now.Add(time.Second) // events of one millisecond have no order
		r := weir.Retention{AuditDays: &days, TTLMultiplier: new(int64(3))}
		if err := s.WriteRetention(t.Context(), now, &r); err != nil {
			t.Fatal(err)
		}
	}
	events := s.audited(t, weir.Subject{}, "")
	if len(events) != 2 || events[0].Action != schema.ActionRetentionSet {
		t.Fatalf("got %+v, want two changes of the retention", events)
	}
	if d := events[0].Details; len(d) != 1 || d[schema.AttrRetention] != int64(6) {
		t.Errorf("got details %v, want only what has changed", d)
	}
	item := s.item(t, schema.AuditKey(s.config.Namespace, schema.AuditSystem, events[0].ID))
	if n, err := schema.Int64(item[schema.AttrTTL]); err != nil || n != now.Unix()+6*24*3600 {
		t.Errorf("got ttl %d, %v, want 6 days", n, err)
	}
}

// TestBucketTTLMultiplier checks the ttl of a bucket item: seven times the minute in which it fills
// up at first, then by the multiplier that this process or another one has set, and none with 0.
func TestBucketTTLMultiplier(t *testing.T) {
	t.Parallel()
	s := configured(t)
	now := configNow
	open := func(s *Store) *limiter.Limiter {
		l, err := limiter.New(s, &limiter.Options{Now: func() time.Time { return now }, CacheTTL: -1})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open(s)
	if err := l.SetLimits(t.Context(), weir.Subject{}, []weir.Limit{rate("rpm", 60)}); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), s.client.TableName, &s.options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	key := schema.BucketID{Namespace: s.config.Namespace, Entity: "acme", Resource: "llm"}.Key()
	for _, c := range []struct {
		name string
		by   *limiter.Limiter // nil for no change
		n    int64
		want int64 // 0 for no ttl
	}{
		{"default", nil, 0, 7 * 60},
		{"set here", l, 2, 2 * 60},
		{"set elsewhere", open(other), 20, 20 * 60},
		{"switched off", l, 0, 0},
		{"switched on", l, 2, 2 * 60},
	} {
		if c.by != nil {
			if err := c.by.SetRetention(t.Context(), weir.Retention{TTLMultiplier: &c.n}); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(10 * time.Minute) // a refill is due
		lease, err := l.Reserve(t.Context(), &weir.Request{Charges: []weir.Charge{
			{Entity: "acme", Resource: "llm", Costs: weir.Costs{"rpm": 30}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Complete(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.running.Wait()
		ttl, err := schema.Int64(s.item(t, key)[schema.AttrTTL])
		if err != nil {
			ttl = now.Unix() // no ttl
		}
		if got := ttl - now.Unix(); got != c.want {
			t.Errorf("%s: the item may be deleted after %d s, want %d (0: never)", c.name, got, c.want)
		}
	}
}

// TestRetentionReadOnly checks that a store that is opened for reading does not change it.
func TestRetentionReadOnly(t *testing.T) {
	t.Parallel()
	s := configured(t)
	o := s.options
	o.ReadOnly = true
	reader, err := Open(t.Context(), s.client.TableName, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if _, err := reader.ReadRetention(t.Context()); err != nil {
		t.Error(err)
	}
	err = reader.WriteRetention(t.Context(), configNow, &weir.Retention{UsageDays: new(int64(7))})
	if !errors.Is(err, weir.Unsupported) {
		t.Errorf("got %v, want unsupported", err)
	}
}
