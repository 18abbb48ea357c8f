//go:build !cgo

package store

import (
	"context"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle"
)

// openEmulator fails as a cluster would: without cgo there is neither.
func openEmulator(ctx context.Context, o *tigerbeetle.Options) (driver.Store, error) {
	return asStore(tigerbeetle.Open(ctx, nil, o))
}
