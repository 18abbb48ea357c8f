package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// onlyGet refuses what would be more than to look.
func onlyGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			httpapi.Refuse(w, http.StatusMethodNotAllowed, invalid("method", shorten(r.Method), "must be GET or HEAD"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onlyProbes serves nothing but health and metrics.
func onlyProbes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			next.ServeHTTP(w, r)
		default:
			r.Pattern = "/"
			httpapi.Refuse(w, http.StatusNotFound, invalid("path", shorten(r.URL.EscapedPath()), "is no path here"))
		}
	})
}

// loopbackOnly refuses requests that were meant for another host, where nothing but the address
// keeps strangers out: a page in a browser on this machine may have a name of its own that leads
// here. The host of the address that is listened on is allowed too.
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
			httpapi.Refuse(w, http.StatusMisdirectedRequest, &weir.Error{
				Code: weir.PermissionDenied, Field: "Host", Value: shorten(host),
				Reason: "must be a loopback address or localhost: this server needs no bearer tokens " +
					"and serves nobody else",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesLoopback reports whether a host without its port can only be this machine. HTTP/1.0 may name
// none, and no browser speaks it.
func namesLoopback(host string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.Unmap().IsLoopback()
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// shorten keeps what a stranger wrote from filling an answer.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
