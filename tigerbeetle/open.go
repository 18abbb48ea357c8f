//go:build cgo

package tigerbeetle

import (
	"context"

	"github.com/weir-limiter/weir/tigerbeetle/internal/client"
)

// Open opens a store on the cluster whose replicas have the given addresses, each HOST:PORT and in
// the cluster's order; a host may be a name. It fails with [weir.Unavailable] if that cluster does
// not answer before the context ends, or within five seconds if the context has no deadline, and
// with [weir.Invalid] if an address or the cluster's ID is not valid.
func Open(ctx context.Context, addresses []string, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	opening, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		opening, cancel = context.WithTimeout(ctx, client.SessionTimeout)
	}
	defer cancel()
	c, err := client.Open(opening, addresses, o.Cluster, o.OnError)
	if err != nil {
		return nil, err
	}
	s, err := OpenLedger(opening, c, o)
	if err != nil {
		_ = c.Close() // Close never fails
		return nil, err
	}
	return s, nil
}
