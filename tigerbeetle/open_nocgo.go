//go:build !cgo

package tigerbeetle

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Store is a [driver.Store] on a ledger. A binary that was built without cgo cannot open one.
type Store struct{ driver.Store }

// Open fails with [weir.Unsupported]: TigerBeetle's client needs cgo, which this binary was built
// without.
func Open(context.Context, []string, *Options) (*Store, error) {
	return nil, &weir.Error{
		Code: weir.Unsupported, Field: "store", Value: "tigerbeetle:",
		Reason: "is not in this binary, which was built without cgo: build weir with CGO_ENABLED=1 and a C " +
			"compiler, or ask a server that was, with --server",
	}
}
