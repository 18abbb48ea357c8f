//go:build cgo

package tigerbeetle

import (
	"context"
	"math/big"
	"net"

	tb "github.com/tigerbeetle/tigerbeetle-go"
)

// Open opens a store on the cluster whose replicas are at the addresses, as HOST:PORT in the cluster's
// order; a host may be a name. It fails with [weir.Unavailable] where nobody answers there as that
// cluster before the context ends, or within five seconds where it has no deadline, and with
// [weir.Invalid] where an address or the cluster's ID is none.
func Open(ctx context.Context, addresses []string, o *Options) (*Store, error) {
	if err := checkAddresses(addresses); err != nil {
		return nil, err
	}
	if o == nil {
		o = &Options{}
	}
	opening, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		opening, cancel = context.WithTimeout(ctx, sessionTimeout)
	}
	defer cancel()
	cluster, err := o.cluster()
	if err != nil {
		return nil, err
	}
	c, err := newClient(opening, o.client(cluster, addresses))
	if err != nil {
		return nil, err
	}
	s, err := OpenLedger(opening, c, o)
	if err != nil {
		_ = c.Close() // it never fails
		return nil, err
	}
	return s, nil
}

// client are the options of the client of a cluster.
func (o *Options) client(cluster *big.Int, addresses []string) clientOptions {
	onError := o.OnError
	if onError == nil {
		onError = func(error) {}
	}
	return clientOptions{
		dial: func(ctx context.Context) (tb.Client, error) {
			resolved, err := resolve(ctx, addresses, net.DefaultResolver.LookupNetIP)
			if err != nil {
				return nil, err
			}
			native, err := tb.NewClient(tb.BigIntToUint128(cluster), resolved)
			if err != nil {
				return nil, explain(err)
			}
			return native, nil
		},
		unreachable: func(cause error) error { return unreachableError(addresses, cluster, cause) },
		onError:     onError,
		maxInFlight: maxInFlight,
	}
}
