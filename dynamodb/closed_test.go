package dynamodb

import (
	"context"
	"iter"
	"testing"

	"github.com/weir-limiter/weir"
)

// firstError stops a sequence after its first entry and returns the entry's error.
func firstError[T any](list iter.Seq2[T, error]) error {
	for _, err := range list {
		return err
	}
	return nil
}

// TestConfigAfterClose checks that a closed store neither changes nor reads its configuration.
func TestConfigAfterClose(t *testing.T) {
	t.Parallel()
	s := configured(t)
	acme := weir.Subject{Entity: "acme", Resource: faultResource}
	calls := map[string]func(ctx context.Context) error{
		"WriteLimits": func(ctx context.Context) error {
			return s.admin.WriteLimits(ctx, configNow, acme, series("rpm", 2, 5))
		},
		"WritePolicy": func(ctx context.Context) error { return s.admin.WritePolicy(ctx, configNow, weir.Allow) },
		"WriteRetention": func(ctx context.Context) error {
			return s.WriteRetention(ctx, configNow, &weir.Retention{UsageDays: new(int64(7))})
		},
		"ReadRetention": func(ctx context.Context) error {
			_, err := s.ReadRetention(ctx)
			return err
		},
		"ReadConfig": func(ctx context.Context) error {
			_, err := s.ReadConfig(ctx, acme, false)
			return err
		},
		"ConfiguredResources": func(ctx context.Context) error {
			_, err := s.admin.ConfiguredResources(ctx, false)
			return err
		},
		"EntityConfigResources": func(ctx context.Context) error {
			_, err := s.admin.EntityConfigResources(ctx, false)
			return err
		},
		"ReadAudit": func(ctx context.Context) error {
			return firstError(s.admin.ReadAudit(ctx, &weir.AuditQuery{At: acme}, false))
		},
		"ReadUsage": func(ctx context.Context) error {
			return firstError(s.admin.ReadUsage(ctx, &weir.UsageQuery{Entity: "acme", Window: weir.Hourly}, nil))
		},
	}
	for name, call := range calls {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s of an open store: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		wantError(t, call(t.Context()), weir.Unavailable, "", "the store is closed")
		if s.running.N != 0 {
			t.Errorf("%s does not return", name)
		}
	}
	s.running.Begin() // a call that Close still waits for
	defer s.running.End()
	if err := calls["ReadConfig"](t.Context()); err != nil {
		t.Errorf("ReadConfig of a call under way: %v", err)
	}
	wantError(t, calls["WriteLimits"](t.Context()), weir.Unavailable, "", "the store is closed")
}
