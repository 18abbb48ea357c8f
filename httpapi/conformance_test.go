package httpapi_test

import (
	"testing"

	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/memory"
)

// The client must answer as the limiter in the server's process does.
func TestConformanceClient(t *testing.T) {
	t.Parallel()
	conformance.TestService(t, conformance.Harness{
		Open: func(t conformance.T, s conformance.Setup) conformance.World {
			t.Helper()
			return openClientWorld(t, s, httpapi.ClientOptions{}, overPipes)
		},
		Traits: (&memory.Store{}).Traits(),
		Leeway: conformance.Leeway{NoCallers: true},
	})
}
