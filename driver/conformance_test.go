package driver_test

import (
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
)

// TestConformance runs the suite of stores on the store of the example.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, conformance.StoreHarness{
		Open: func(t conformance.T, s conformance.Setup) driver.Store {
			store, err := openBuckets(s.Definitions)
			if err != nil {
				t.Fatalf("definitions: %v", err)
			}
			return store
		},
	})
}
