package connect

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/console"
)

// Bounds of the files with the bearer token and the certificates.
const (
	maxTokenBytes = 4 << 10
	maxCertBytes  = 4 << 20
)

// Dial makes a client of the server that t names. It sends no request yet.
func Dial(a *console.App, cmd *cobra.Command, t *Target) (*Connection, error) {
	ctx := cmd.Context()
	if err := t.checkServer(cmd); err != nil {
		return nil, err
	}
	token, err := bearerToken(a, cmd, t.tokenFile)
	if err != nil {
		return nil, err
	}
	t.anonymous = token == ""
	var trusted *x509.CertPool
	if t.caCert != "" {
		if trusted, err = certificates(ctx, a, t.caCert); err != nil {
			return nil, err
		}
	}
	t.transport = newServerTransport(trusted, max(t.Idle, manyIdle))
	c := &Connection{OnServer: true}
	client, err := httpapi.NewClient(t.Server, &httpapi.ClientOptions{
		BearerToken: token, HTTPClient: &http.Client{Transport: t.transport}, Timeout: attemptTimeout,
		Note: func(text string) { c.Notes = append(c.Notes, text) },
	})
	if err != nil {
		if e, ok := errors.AsType[*weir.Error](err); ok {
			err = e // a client has one server, so the error need not name it
		}
		return nil, console.UsageError(cmd, "%w", err)
	}
	if token != "" && !t.confidential() {
		printNotes(a, []string{"the bearer token is sent unencrypted, over plain http to another machine: " +
			"use https"})
	}
	c.Service, c.Admin, c.Records, c.Limits, c.Namespaces = client, client, client, client, client
	c.Activity = client.Activity
	c.Close = func() error {
		t.transport.CloseIdleConnections()
		return client.Close()
	}
	return c, nil
}

// checkServer refuses an address without a scheme, with an error about the scheme.
func (t *Target) checkServer(cmd *cobra.Command) error {
	for _, scheme := range []string{"http://", "https://"} {
		if len(t.Server) >= len(scheme) && strings.EqualFold(t.Server[:len(scheme)], scheme) {
			return nil
		}
	}
	address := t.Server
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		address = "…" + address[at:] // the part before it may be a secret
	}
	return console.UsageError(cmd, "%w", &weir.Error{Code: weir.Invalid, Field: "server", Value: address,
		Reason: "must begin with http:// or https://"})
}

// confidential reports whether the requests cannot be read by others on the network.
func (t *Target) confidential() bool {
	u, err := url.Parse(t.Server)
	if err != nil || u.Scheme == "https" {
		return true // an invalid address is reported elsewhere
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// bearerToken reads the bearer token from a file, otherwise from the environment. Its errors do not
// quote what was read, because that may be a secret.
func bearerToken(a *console.App, cmd *cobra.Command, file string) (string, error) {
	if file == "" {
		token := strings.TrimRight(a.Env(TokenEnv), "\r\n")
		if err := checkToken(token, TokenEnv); err != nil {
			return "", console.UsageError(cmd, "%w", err)
		}
		return token, nil
	}
	if err := checkPrivate(file); err != nil {
		return "", err
	}
	data, err := a.Read(cmd.Context(), file, maxTokenBytes)
	if err != nil {
		return "", err
	}
	token := strings.TrimRight(string(data), "\r\n")
	if token == "" {
		return "", fmt.Errorf("%s: has no bearer token", console.InputName(file))
	}
	return token, checkToken(token, console.InputName(file))
}

// checkToken returns the mistake in a bearer token, which may be empty.
func checkToken(token, from string) error {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] >= 0x7F {
			return &weir.Error{
				Code: weir.Invalid, Field: from, Reason: "must hold one bearer token, without spaces",
			}
		}
	}
	return nil
}

// checkPrivate refuses a regular file that others can read. It does not check the modes of pipes
// and devices.
func checkPrivate(file string) error {
	if file == console.StandardInput || runtime.GOOS == "windows" {
		return nil
	}
	info, err := os.Stat(file)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: its mode %04o lets other users read or change it: set it to 0600",
			file, info.Mode().Perm())
	}
	return nil // opening the file reports other errors
}

// certificates reads the trusted certificates.
func certificates(ctx context.Context, a *console.App, file string) (*x509.CertPool, error) {
	data, err := a.Read(ctx, file, maxCertBytes)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: has no certificate in PEM form", console.InputName(file))
	}
	return pool, nil
}
