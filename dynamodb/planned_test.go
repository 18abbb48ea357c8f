package dynamodb

import (
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/soak"
)

// eager is a store that the limiter gives only plans.
type eager struct{ *Store }

// ReserveUnplanned hides the store's method behind another signature.
func (eager) ReserveUnplanned() {}

// TestConformanceEager runs the suite with a plan for every reservation.
func TestConformanceEager(t *testing.T) {
	t.Parallel()
	soak.Only(t)
	h := harness(t, nil)
	open := h.Open
	h.Open = func(t conformance.T, s conformance.Setup) driver.Store {
		b := eager{open(t, s).(*Store)}
		if _, unplanned := driver.Store(b).(driver.UnplannedReserver); unplanned {
			t.Fatalf("it reserves without a plan")
		}
		return b
	}
	elsewhere := h.OpenSecond
	h.OpenSecond = func(t conformance.T, b driver.Store) driver.Store {
		return eager{elsewhere(t, b.(eager).Store).(*Store)}
	}
	conformance.TestStore(t, h)
}
