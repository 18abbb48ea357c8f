package server

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-limiter/weir/httpapi"
)

// restricted lets in callers whose bearer token has at least the role read, where bearer tokens are
// in use. The routes of the API see to that themselves.
func (s *Server) restricted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "the method must be GET or HEAD")
			return
		}
		if s.tokens == nil {
			next.ServeHTTP(w, r)
			return
		}
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		identity, ok := s.tokens.authenticate(strings.Trim(bearer, " "))
		switch {
		case !ok || !strings.EqualFold(scheme, "Bearer"):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "a bearer token must be given")
		case identity.Role < httpapi.RoleRead:
			refuse(w, http.StatusForbidden, "the role must be read or stronger")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers with a problem, as the API does.
func refuse(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
	if err != nil {
		panic(err) // strings and a number
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who does not read it asks again
}

// loopbackOnly refuses requests that were meant for another host, where nothing but the address keeps
// strangers out: a page in a browser on this machine may have a name of its own that leads here.
func (s *Server) loopbackOnly(next http.Handler) http.Handler {
	if s.tokens != nil || s.options.NoTokens {
		return next
	}
	given, _, _ := net.SplitHostPort(s.options.Listen) // it was listened on
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !namesLoopback(host) && !strings.EqualFold(host, given) {
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusMisdirectedRequest, "the Host must be a loopback address or localhost: "+
				"this server needs no bearer tokens and serves nobody else")
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
