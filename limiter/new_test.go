package limiter_test

import (
	"errors"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// TestNewWithoutStore checks that a missing store is reported together with the mistakes in the
// options.
func TestNewWithoutStore(t *testing.T) {
	t.Parallel()
	for _, o := range []*limiter.Options{nil, {LeaseMemorySize: -1}} {
		l, err := limiter.New(nil, o)
		e, ok := errors.AsType[*weir.Error](err)
		if l != nil || !ok || e.Code != weir.Invalid || e.Field != "Store" {
			t.Errorf("got %v, %v, want invalid Backend", l, err)
		}
	}
}

// TestNewOutOfRange checks that the error for a number out of range names the range.
func TestNewOutOfRange(t *testing.T) {
	t.Parallel()
	const most = 1 << 30
	for _, c := range []struct {
		options      limiter.Options
		field, value string
		reason       string
	}{
		{limiter.Options{LeaseMemorySize: -1}, "LeaseMemorySize", "-1", "must be from 1 to 1073741824"},
		{limiter.Options{MaxLeases: most + 1}, "MaxLeases", "1073741825", "must be from 1 to 1073741824"},
		{limiter.Options{CacheSize: -1}, "CacheSize", "-1", "must be from 1 to 1073741824"},
		{limiter.Options{MaxLeasesPerCaller: -1}, "MaxLeasesPerCaller", "-1", "must be from 1 to 1000000, the bound on all leases"},
		{limiter.Options{MaxLeases: 10, MaxLeasesPerCaller: 11}, "MaxLeasesPerCaller", "11", "must be from 1 to 10, the bound on all leases"},
		{limiter.Options{CascadeDepth: 9}, "CascadeDepth", "9", "must be from 1 to 8, the most that the store allows"},
	} {
		store, err := memory.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = limiter.New(store, &c.options)
		e, ok := errors.AsType[*weir.Error](err)
		if !ok || e.Code != weir.Invalid || e.Field != c.field || e.Value != c.value || e.Reason != c.reason {
			t.Errorf("got %v, want %s %q: %s", err, c.field, c.value, c.reason)
		}
	}
}
