package conformance_test

import (
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/memory"
)

// The suite runs on a store from one test of the store's package, TestConformance. It opens a store
// for each case, with the case's definitions.
func ExampleTestStore() {
	testConformance := func(t *testing.T) {
		conformance.TestStore(t, conformance.StoreHarness{
			Open: func(t conformance.T, s conformance.Setup) driver.Store {
				store, err := memory.Open(&memory.Options{Definitions: s.Definitions})
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				return store
			},
		})
	}
	_ = testConformance // go test runs it
}
