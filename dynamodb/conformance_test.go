package dynamodb

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestBackend(t, harness(t, nil))
}

// harness opens a namespace of its own for each world, on one table.
func harness(t *testing.T, tune func(o *Options)) conformance.BackendHarness {
	t.Helper()
	table := madeTable(t)
	return conformance.BackendHarness{
		StoreTimeout: 30 * time.Second,
		Elsewhere: func(t conformance.T, b weir.Backend) weir.Backend {
			t.Helper()
			o := b.(*Store).options
			store, err := Open(t.Context(), table.Name, &o)
			if err != nil {
				t.Fatalf("open elsewhere: %v", err)
			}
			return store
		},
		Leeway: conformance.Leeway{
			Unread: true, NoBubble: true, WholeSeconds: true, Contends: true, Compensates: true,
		},
		Open: func(t conformance.T, s conformance.Setup) weir.Backend {
			t.Helper()
			o := *table.Options
			o.Namespace, o.Principal = "w"+strings.ToLower(weir.NewLeaseID(s.Start).String()), "test"
			if _, _, err := table.RegisterNamespace(t.Context(), o.Namespace); err != nil {
				t.Fatalf("register: %v", err)
			}
			if tune != nil {
				tune(&o)
			}
			store, err := Open(t.Context(), table.Name, &o)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			conformance.Define(t, store, s)
			return store
		},
	}
}
