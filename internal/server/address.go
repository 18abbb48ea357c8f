package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/weir-limiter/weir"
)

// listen opens the address that an option names. Without bearer tokens it must be one that only
// this machine reaches, unless open says that others may: then everybody would be admin.
func listen(ctx context.Context, option, address string, open bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, invalid(option, address, "must be host:port, such as 127.0.0.1:7117")
	}
	if !open {
		if err := checkLoopback(ctx, option, address, host); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, notListened(option, address, err)
	}
	if !open && !isLoopback(l.Addr()) { // the name may have changed its meaning since
		_ = l.Close() // nothing was accepted
		return nil, reachable(option, address, l.Addr().String())
	}
	return l, nil
}

// notListened returns the error of an address that cannot be listened on. What [net] says of the
// operation is left out: it names the address again.
func notListened(option, address string, err error) *weir.Error {
	e := &weir.Error{Code: weir.Unavailable, Field: option, Value: address, Reason: "cannot be listened on", Err: err}
	if errors.Is(err, syscall.EADDRINUSE) {
		e.Reason, e.Err = "is already in use: choose another address, or stop what listens there", nil
	} else if operation, ok := errors.AsType[*net.OpError](err); ok {
		e.Err = operation.Err
	}
	return e
}

// checkLoopback refuses a host unless each of its addresses is a loopback one.
func checkLoopback(ctx context.Context, option, address, host string) error {
	if host == "" {
		return reachable(option, address, "every address of this machine")
	}
	addresses, err := resolve(ctx, host)
	if err != nil {
		e := &weir.Error{Code: weir.Unavailable, Field: option, Value: address, Reason: "cannot be resolved", Err: err}
		if lookup, ok := errors.AsType[*net.DNSError](err); ok {
			e.Reason, e.Err = "cannot be resolved: "+lookup.Err, nil // not the name and its server again
		}
		return e
	}
	for _, ip := range addresses {
		switch {
		case ip.IsUnspecified():
			return reachable(option, address, "every address of this machine")
		case !ip.Unmap().IsLoopback():
			return reachable(option, address, ip.String())
		}
	}
	return nil
}

func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func reachable(option, address, means string) error {
	reason := "can be reached by others"
	if !strings.HasPrefix(address, means+":") {
		reason = "means " + means + ", which others can reach"
	}
	return invalid(option, address, reason+
		": name bearer tokens with --tokens, or say --insecure-no-tokens to let everybody in as admin")
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr().Unmap().IsLoopback()
}
