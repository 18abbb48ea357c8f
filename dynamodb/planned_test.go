package dynamodb

import (
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
)

// plannedOnly is a store that the limiter gives only plans.
type plannedOnly struct{ *Store }

// ReserveUnplanned hides the store's method behind another signature.
func (plannedOnly) ReserveUnplanned() {}

// TestConformancePlanned runs the suite with a plan for every reservation.
func TestConformancePlanned(t *testing.T) {
	t.Parallel()
	soak.Only(t)
	h := harness(t, nil)
	open := h.Open
	h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
		b := plannedOnly{open(t, s).(*Store)}
		if _, unplanned := driver.Store(b).(driver.UnplannedReserver); unplanned {
			t.Fatalf("it reserves without a plan")
		}
		return b
	}
	elsewhere := h.OpenSecond
	h.OpenSecond = func(t conformance.T, b driver.Store) driver.Store {
		return plannedOnly{elsewhere(t, b.(plannedOnly).Store).(*Store)}
	}
	conformance.TestStore(t, h)
}
