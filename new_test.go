package weir_test

import (
	"errors"
	"testing"

	"github.com/weir-limiter/weir"
)

// TestNewWithoutStore: a missing store is a mistake in the call, told with those in the options.
func TestNewWithoutStore(t *testing.T) {
	t.Parallel()
	for _, o := range []*weir.Options{nil, {LeaseMemorySize: -1}} {
		l, err := weir.New(nil, o)
		e, ok := errors.AsType[*weir.Error](err)
		if l != nil || !ok || e.Code != weir.Invalid || e.Field != "Backend" {
			t.Errorf("got %v, %v, want invalid Backend", l, err)
		}
	}
}
