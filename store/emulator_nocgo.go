//go:build !cgo

package store

import (
	"context"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle"
)

// openEmulator returns the same error as opening a cluster: without cgo there is neither.
func openEmulator(ctx context.Context, o *tigerbeetle.Options) (driver.Store, error) {
	return asStore(tigerbeetle.Open(ctx, nil, o))
}
