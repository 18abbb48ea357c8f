package limiter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// keepingStore is a store with settings of the retention, which notes the changes.
type keepingStore struct {
	*fakeStore

	changes []weir.Retention
}

func (s *keepingStore) ReadRetention(context.Context) (*weir.Retention, error) {
	if len(s.changes) == 0 {
		return nil, nil
	}
	return &s.changes[len(s.changes)-1], nil
}

func (s *keepingStore) WriteRetention(_ context.Context, _ time.Time, r *weir.Retention) error {
	s.changes = append(s.changes, *r)
	return nil
}

func retention(usage, audit, multiplier *int64) weir.Retention {
	return weir.Retention{UsageDays: usage, AuditDays: audit, TTLMultiplier: multiplier}
}

// TestSetRetention checks that a change with mistakes names all of them and does not reach the
// store, and that a valid one reaches it as it is.
func TestSetRetention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change weir.Retention
		wrong  string // the fields with mistakes
	}{
		{"nothing", weir.Retention{}, "retention"},
		{"least", retention(new(int64(1)), new(int64(1)), new(int64(0))), ""},
		{"most", retention(new(int64(3650)), new(int64(3650)), new(int64(1_000_000))), ""},
		{"one", weir.Retention{AuditDays: new(int64(30))}, ""},
		{"below", retention(new(int64(0)), new(int64(0)), new(int64(-1))), "usage_days audit_days ttl_multiplier"},
		{"above", retention(new(int64(3651)), nil, new(int64(1_000_001))), "usage_days ttl_multiplier"},
	} {
		store := &keepingStore{fakeStore: newFakeStore()}
		l, err := limiter.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = l.SetRetention(t.Context(), c.change)
		if got := strings.Join(fieldsOf(err), " "); got != c.wrong {
			t.Errorf("%s: got mistakes in %q, want %q: %v", c.name, got, c.wrong, err)
		}
		if c.wrong != "" {
			if len(store.changes) != 0 {
				t.Errorf("%s: the store was called", c.name)
			}
			continue
		}
		got, err := l.Retention(t.Context())
		if err != nil || !got.Same(c.change) {
			t.Errorf("%s: got %v, %v", c.name, got, err)
		}
	}
	l, err := limiter.New(&keepingStore{fakeStore: newFakeStore()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Retention(t.Context()); !errors.Is(err, weir.Unavailable) {
		t.Errorf("neither a retention nor an error: got %v", err)
	}
}

// fieldsOf returns the fields of the joined errors.
func fieldsOf(err error) (fields []string) {
	switch e := err.(type) {
	case *weir.Error:
		return []string{e.Field}
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			fields = append(fields, fieldsOf(part)...)
		}
	case interface{ Unwrap() error }:
		return fieldsOf(e.Unwrap())
	}
	return fields
}

// TestRetentionUnsupported checks that a store without such settings refuses them, also in
// definitions, and that the error says what to use instead.
func TestRetentionUnsupported(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	week := weir.Retention{UsageDays: new(int64(7))}
	_, reading := l.Retention(t.Context())
	for what, err := range map[string]error{
		"retention":     reading,
		"set retention": l.SetRetention(t.Context(), week),
		"configure":     l.Configure(t.Context(), &weir.Definitions{Retention: week}),
	} {
		if !errors.Is(err, weir.Unsupported) || !strings.Contains(err.Error(), "DynamoDB") ||
			!strings.Contains(err.Error(), "memory") {
			t.Errorf("%s: got %v, want unsupported and what to use instead", what, err)
		}
	}
}
