package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi/httphandler"
)

// listen listens on the address of an option. It must be a loopback address unless open is true,
// because without bearer tokens every client that reaches it is admin.
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
		return nil, listenError(option, address, err)
	}
	if !open && !isLoopback(l.Addr()) { // the name may resolve to another address now
		_ = l.Close() // nothing was accepted
		return nil, reachable(option, address, l.Addr().String())
	}
	return l, nil
}

// listenError returns the error of an address that cannot be listened on, without the part of net's
// error that names the address again.
func listenError(option, address string, err error) *weir.Error {
	e := &weir.Error{Code: weir.Unavailable, Field: option, Value: address,
		Reason: "cannot be opened for listening", Err: err}
	if errors.Is(err, syscall.EADDRINUSE) {
		e.Reason, e.Err = "is already in use: choose another address, or stop the process that listens there", nil
	} else if operation, ok := errors.AsType[*net.OpError](err); ok {
		e.Err = operation.Err
	}
	return e
}

// checkLoopback refuses a host unless all its addresses are loopback addresses.
func checkLoopback(ctx context.Context, option, address, host string) error {
	if host == "" {
		return reachable(option, address, "every address of this machine")
	}
	addresses, err := resolve(ctx, host)
	if err != nil {
		e := &weir.Error{Code: weir.Unavailable, Field: option, Value: address, Reason: "cannot be resolved", Err: err}
		if lookup, ok := errors.AsType[*net.DNSError](err); ok {
			e.Reason, e.Err = "cannot be resolved: "+lookup.Err, nil // without the name and its server
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
	reason := "can be reached from other machines"
	if !strings.HasPrefix(address, means+":") {
		reason = "means " + means + ", which other machines can reach"
	}
	return invalid(option, address, reason+
		": name a file of bearer tokens with --tokens, or make every client admin with --insecure-no-tokens")
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.AddrPort().Addr().Unmap().IsLoopback()
}

// getOnly refuses methods other than GET and HEAD.
func getOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			httphandler.Refuse(w, http.StatusMethodNotAllowed, invalid("method", shorten(r.Method), "must be GET or HEAD"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// probesOnly serves only health and metrics.
func probesOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			next.ServeHTTP(w, r)
		default:
			r.Pattern = "/"
			httphandler.Refuse(w, http.StatusNotFound, invalid("path", shorten(r.URL.EscapedPath()),
				"is not a path of this server"))
		}
	})
}

// loopbackOnly refuses requests for other hosts if only the loopback address keeps strangers out: a
// page in a browser on this machine may have a host name that resolves to this server. The host in
// the listen address is allowed too.
func (s *Server) loopbackOnly(listen string, next http.Handler) http.Handler {
	if s.tokens != nil || s.options.NoTokens {
		return next
	}
	given, _, _ := net.SplitHostPort(listen) // it was listened on
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !namesLoopback(host) && !strings.EqualFold(host, given) {
			w.Header().Set("Connection", "close")
			s.trail.Refused(r.Context(), &httphandler.Refusal{
				Kind: refusedHost, Request: r, Status: http.StatusMisdirectedRequest,
				Reason: "Host " + shorten(host) + " must be a loopback address or localhost",
			})
			httphandler.Refuse(w, http.StatusMisdirectedRequest, &weir.Error{
				Code: weir.PermissionDenied, Field: "Host", Value: shorten(host),
				Reason: "must be a loopback address or localhost: this server has no bearer tokens " +
					"and serves only clients on this machine",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesLoopback reports whether a host without a port can only be this machine. HTTP/1.0 may have
// no host, but browsers do not use it.
func namesLoopback(host string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.Unmap().IsLoopback()
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// shorten bounds the length of a value from outside, so that it cannot fill an answer.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
