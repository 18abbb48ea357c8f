//go:build cgo

package store

import (
	"context"

	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/tigerbeetle"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// openEmulator opens a TigerBeetle store on an emulator in the process. The options for a shared
// cluster do not apply to it.
func openEmulator(ctx context.Context, o *tigerbeetle.Options) (driver.Store, error) {
	return asStore(tigerbeetle.OpenLedger(ctx, emulator.New(nil), o))
}
