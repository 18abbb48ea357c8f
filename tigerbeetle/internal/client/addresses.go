package client

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir"
)

// splitAddress splits HOST:PORT.
func splitAddress(address string) (host, port string, err error) {
	bad := func(reason string) error {
		return &weir.Error{Code: weir.Invalid, Field: "store.addresses", Value: address, Reason: reason}
	}
	host, port, err = net.SplitHostPort(address)
	if err != nil || host == "" || strings.ContainsAny(host, "/@%, \t\n") {
		return "", "", bad("must be HOST:PORT")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", bad("must end with a port from 1 to 65535")
	}
	return host, port, nil
}

// checkAddresses reports everything that is wrong with a list of addresses.
func checkAddresses(addresses []string) error {
	if len(addresses) == 0 {
		return &weir.Error{
			Code: weir.Invalid, Field: "store.addresses", Reason: "must be given: one for each replica",
		}
	}
	seen := make(map[string]bool)
	var errs []error
	for _, a := range addresses {
		if _, _, err := splitAddress(a); err != nil {
			errs = append(errs, err)
		} else if seen[a] {
			errs = append(errs, &weir.Error{
				Code: weir.Invalid, Field: "store.addresses", Value: a, Reason: "is given twice",
			})
		}
		seen[a] = true
	}
	return errors.Join(errs...)
}

// resolve resolves the names in addresses, because TigerBeetle's client accepts only IP addresses.
// It takes a name's first IPv4 address, or else its first address.
func resolve(
	ctx context.Context, addresses []string,
	ask func(ctx context.Context, network, host string) ([]netip.Addr, error),
) ([]string, error) {
	out := make([]string, len(addresses))
	for i, address := range addresses {
		host, port, err := splitAddress(address)
		if err != nil {
			return nil, err
		}
		at, err := netip.ParseAddr(host)
		if err != nil {
			found, err := ask(ctx, "ip", host)
			if err != nil || len(found) == 0 {
				return nil, &weir.Error{
					Code: weir.Unavailable, Err: err,
					Reason: "the name in TigerBeetle's address " + address + " cannot be resolved",
				}
			}
			at = found[0]
			for _, a := range found {
				if a.Unmap().Is4() {
					at = a
					break
				}
			}
		}
		out[i] = net.JoinHostPort(at.Unmap().WithZone("").String(), port)
	}
	return out, nil
}

// unreachableError returns the error for a cluster that did not answer. It names no field, because
// the engine puts the lease there.
func unreachableError(addresses []string, cluster *big.Int, cause error) error {
	return &weir.Error{
		Code: weir.Unavailable, Err: cause,
		Reason: fmt.Sprintf("no replica answered at %s as TigerBeetle cluster %s",
			strings.Join(addresses, ","), cluster),
	}
}

// clusterID returns the ID of a cluster; nil means 0.
func clusterID(id *big.Int) (*big.Int, error) {
	if id == nil {
		return new(big.Int), nil
	}
	if id.Sign() < 0 || id.BitLen() > 128 {
		return nil, &weir.Error{
			Code: weir.Invalid, Field: "store.cluster", Value: id.String(), Reason: "must be from 0 to 2^128-1",
		}
	}
	return id, nil
}
