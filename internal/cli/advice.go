package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-limiter/weir"
)

// advise says what may help where nobody answers, or lets the caller in.
func (t *target) advise(err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	switch {
	case isTable(t.store) && errors.Is(err, weir.UnknownLease):
		advice = "a lease on a table lives in the process that made it, such as weir serve"
	case isTable(t.store), isCluster(t.store):
	case t.store != "" && errors.Is(err, weir.Unavailable):
		advice = "if a server has it open, ask that one with --server"
	case t.store != "":
	case errors.Is(err, weir.Unavailable):
		advice = t.adviseUnreached(err)
	case errors.Is(err, weir.PermissionDenied) && t.anonymous:
		advice = "give a bearer token in " + tokenEnv + " or with --token-file"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, advice)
}

// adviseUnreached says what may help where no answer of weir's came.
func (t *target) adviseUnreached(err error) string {
	status, location := 0, ""
	if t.transport != nil {
		status, location = t.transport.last()
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	secure := strings.HasPrefix(strings.ToLower(t.server), "https:")
	switch {
	case unknown:
		return "--ca-cert names the certificates to trust"
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest && location != "":
		return fmt.Sprintf("it leads to %q: name the server itself with --server", location)
	case secure && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "it speaks no TLS: its address begins with http://"
	case !secure && status == http.StatusBadRequest:
		return "if it speaks TLS, its address begins with https://"
	case t.byDefault:
		return "is `weir serve` running? --server names another place"
	}
	return ""
}
