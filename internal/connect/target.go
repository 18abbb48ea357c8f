// Package connect leads a command to the limits: those of a server, or those of a store that is
// opened for the one command.
package connect

import (
	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
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

// Connection is an open connection to a server, or a store that is open for one command.
type Connection struct {
	Service weir.Service
	Admin   httpapi.Admin
	Close   func() error
	// OnServer is true where a server is asked.
	OnServer bool
	// Notes are the remarks of a server about the changes it made.
	Notes []string
}

// Note returns the last remark of the server, for JSON.
func (c *Connection) Note() string {
	if len(c.Notes) == 0 {
		return ""
	}
	return c.Notes[len(c.Notes)-1]
}
