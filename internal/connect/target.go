// Package connect leads a command to the limits: those of a server, or those of a store that is
// opened for the one command.
package connect

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/console"
)

// The environment of the commands that ask or act once.
const (
	ServerEnv = "WEIR_SERVER"
	StoreEnv  = "WEIR_STORE"
	TokenEnv  = "WEIR_TOKEN"
)

// targetHelp ends the help of every command that asks or acts once.
const targetHelp = `

The command asks the server at --server (or WEIR_SERVER; by default
` + DefaultServer + `). With --store (or WEIR_STORE) it opens a store itself: a
DynamoDB table, a TigerBeetle cluster, or a snapshot file that no other process has open; the
last two need --limits. A flag takes precedence over both variables, and WEIR_SERVER over
WEIR_STORE. The bearer token for a server is in WEIR_TOKEN, or in a file named with
--token-file.`

// Access says what a command does to its target.
type Access int

const (
	// Reads is for commands that change and create nothing.
	Reads Access = iota
	// Updates is for commands that change what must exist.
	Updates
	// Reserves is for commands that may create the state of a store.
	Reserves
	// Configures is for commands that change limits and entities.
	Configures
)

// Target is the server or the store that a command acts on.
type Target struct {
	does Access

	// Server is the URL of a server; empty if a store is opened.
	Server    string
	store     string
	limits    string
	tokenFile string
	caCert    string

	// Defaulted reports whether no flag and no variable named the server.
	Defaulted bool
	anonymous bool // no bearer token was given
	// Idle is how many idle connections to a server are kept. Default: 256, which are the least
	Idle int
	// transport is how a server is reached; nil before.
	transport *serverTransport
}

// addTarget gives a command the flags that say where it goes.
func addTarget(cmd *cobra.Command, does Access) *Target {
	t := &Target{does: does}
	cmd.Long += targetHelp
	t.AddServerFlags(cmd, "`URL` of the server to ask (default "+DefaultServer+")")
	flags := cmd.Flags()
	flags.StringVar(&t.store, "store", "",
		"`URL` of a store to open instead, like dynamodb://TABLE or memory:?snapshot=FILE")
	flags.StringVar(&t.limits, "limits", "", "limits `FILE` for the store, or - for standard input")
	return t
}

// AddServerFlags gives a command the flags that say which server it asks, and how it is reached.
func (t *Target) AddServerFlags(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&t.Server, "server", "", usage)
	flags.StringVar(&t.tokenFile, "token-file", "", "`FILE` with the bearer token for the server")
	flags.StringVar(&t.caCert, "ca-cert", "",
		"`FILE` of certificates (PEM) to trust instead of the system's")
}

// resolve chooses between a server and a store, and refuses flags of the other.
func (t *Target) resolve(cmd *cobra.Command, env func(string) string) error {
	given := cmd.Flags().Changed
	switch {
	case given("server") && given("store"):
		return console.UsageError(cmd, "--server and --store are two places: give one of them")
	case given("server") || given("store"):
	case env(ServerEnv) != "":
		t.Server = env(ServerEnv)
	case env(StoreEnv) != "":
		t.store = env(StoreEnv)
	default:
		t.Server, t.Defaulted = DefaultServer, true
	}
	foreign, reason := []string{"limits"}, "is for --store: a server has limits of its own"
	if t.store != "" {
		foreign, reason = []string{"token-file", "ca-cert"}, "is for a server, not for --store"
	}
	for _, name := range foreign {
		if given(name) {
			return console.UsageError(cmd, "--%s %s", name, reason)
		}
	}
	return nil
}

// The address that serve listens on unless told otherwise, and where the client commands look for a
// server. It is a loopback address: other machines cannot reach it.
const (
	DefaultListen = "127.0.0.1:7117"
	DefaultServer = "http://" + DefaultListen
)

// Hint adds to an error what may help if no server answered or the caller was refused.
func (t *Target) Hint(err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	switch {
	case IsTable(t.store) && errors.Is(err, weir.UnknownLease):
		advice = "a lease on a table lives in the process that made it, such as weir serve"
	case IsTable(t.store), IsCluster(t.store):
	case t.store != "" && errors.Is(err, weir.Unavailable):
		advice = "if a server has it open, ask that one with --server"
	case t.store != "":
	case errors.Is(err, weir.Unavailable):
		advice = t.adviseUnreached(err)
	case errors.Is(err, weir.PermissionDenied) && t.anonymous:
		advice = "give a bearer token in " + TokenEnv + " or with --token-file"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, advice)
}

// adviseUnreached says what may help where no answer of weir's came.
func (t *Target) adviseUnreached(err error) string {
	status, location := 0, ""
	if t.transport != nil {
		status, location = t.transport.last()
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	secure := strings.HasPrefix(strings.ToLower(t.Server), "https:")
	switch {
	case unknown:
		return "--ca-cert names the certificates to trust"
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest && location != "":
		return fmt.Sprintf("it leads to %q: name the server itself with --server", location)
	case secure && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "it speaks no TLS: its address begins with http://"
	case !secure && status == http.StatusBadRequest:
		return "if it speaks TLS, its address begins with https://"
	case t.Defaulted:
		return "is `weir serve` running? --server names another place"
	}
	return ""
}
