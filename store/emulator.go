//go:build cgo

package store

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle"
)

// openEmulator opens a TigerBeetle store on a cluster in the process, which has nothing to look at
// only.
func openEmulator(ctx context.Context, o *tigerbeetle.Options) (weir.Backend, error) {
	return opened(tigerbeetle.OpenLedger(ctx, tigerbeetle.NewEmulator(nil), o))
}
