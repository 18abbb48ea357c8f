package limiter_test

import (
	"testing"

	"github.com/weir-limiter/weir/internal/testkit/versionrace"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestVersionRace lets two administrators race on a store in memory.
func TestVersionRace(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	versionrace.Run(t, map[string]versionrace.Admin{"alice": l, "bob": l})
}
