package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
)

// Bounds of the files that say how to reach a server.
const (
	maxTokenBytes = 4 << 10
	maxCertBytes  = 4 << 20
)

// dial makes a client of the server that t names. It does not ask anything yet.
func (a *app) dial(cmd *cobra.Command, t *target) (*connection, error) {
	ctx := cmd.Context()
	token, err := a.bearerToken(ctx, t.tokenFile)
	if err != nil {
		return nil, err
	}
	t.anonymous = token == ""
	c := &connection{}
	idle := func() {}
	options := &httpapi.ClientOptions{
		BearerToken: token,
		Note:        func(text string) { c.notes = append(c.notes, text) },
	}
	if t.caCert != "" {
		if options.HTTPClient, err = a.trusting(ctx, t.caCert); err != nil {
			return nil, err
		}
		idle = options.HTTPClient.CloseIdleConnections
	}
	client, err := httpapi.NewClient(t.server, options)
	if err != nil {
		return nil, misused(cmd, "%w", err)
	}
	c.service, c.admin = client, client
	c.close = func() error {
		idle()
		return client.Close()
	}
	return c, nil
}

// bearerToken reads the bearer token from a file, otherwise from the environment. No message says
// what was found in its place: it may be a secret.
func (a *app) bearerToken(ctx context.Context, file string) (string, error) {
	token := a.env(tokenEnv)
	from := tokenEnv
	if file != "" {
		data, err := a.read(ctx, file, maxTokenBytes)
		if err != nil {
			return "", err
		}
		token, from = strings.TrimRight(string(data), "\r\n"), inputName(file)
		if token == "" {
			return "", fmt.Errorf("%s: has no bearer token", from)
		}
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] >= 0x7F {
			return "", &weir.Error{
				Code: weir.Invalid, Field: from, Reason: "must hold one bearer token, without spaces",
			}
		}
	}
	return token, nil
}

// trusting makes an HTTP client that trusts the certificates in a file, and no others.
func (a *app) trusting(ctx context.Context, file string) (*http.Client, error) {
	data, err := a.read(ctx, file, maxCertBytes)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: has no certificate in PEM form", inputName(file))
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{} // somebody has replaced it; ours needs only the certificates
	}
	transport := base.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: transport}, nil
}
