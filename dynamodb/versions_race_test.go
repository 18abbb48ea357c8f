package dynamodb

import (
	"testing"

	"github.com/weir-limiter/weir/internal/testkit/versionrace"
	"github.com/weir-limiter/weir/limiter"
)

// TestVersionRace lets two administrators, each with a process of its own, race on a table.
func TestVersionRace(t *testing.T) {
	t.Parallel()
	first := configured(t)
	second, err := Open(t.Context(), first.client.TableName, &first.options)
	if err != nil {
		t.Fatal(err)
	}
	admins := map[string]versionrace.Admin{}
	for name, s := range map[string]*Store{"alice": first, "bob": second} {
		l, err := limiter.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		admins[name] = l
	}
	versionrace.Run(t, admins)
}
