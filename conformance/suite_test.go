package conformance

import "testing"

func TestModel(t *testing.T) {
	t.Parallel()
	TestService(t, ModelHarness(nil))
}
