// Package connect connects a command to a server, or to a store that is opened for that one
// command.
//
// [Command] turns a [Plan] into the function of a cobra command. When the command runs, it calls
// the plan, which reads arguments and flags and returns an [Action]. Then [Target] chooses between
// server and store by the flags and the environment; the store is refused if it would forget what
// the command did. The action gets a [Connection], which is a client of the server or a limiter
// over the store. Command closes the connection before it prints the [Answer], because a snapshot
// is written only then, and adds advice to errors ([Target.Hint]).
//
// Commands of other packages that make many calls, such as replay and loadtest, use a Target and
// [Dial] directly.
//
// A command makes one connection and no calls at the same time, so there are no locks, except in
// serverTransport, whose requests are concurrent in a load test.
package connect

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/console"
	"github.com/weir-limiter/weir/namespace"
)

// The environment variables of the commands that make one call.
const (
	ServerEnv = "WEIR_SERVER"
	StoreEnv  = "WEIR_STORE"
	TokenEnv  = "WEIR_TOKEN"
)

// targetHelp ends the help of every command that makes one call.
const targetHelp = `

The command asks the server at --server (or WEIR_SERVER; by default
` + DefaultServer + `). With --store (or WEIR_STORE) it opens a store itself: a
DynamoDB table, a TigerBeetle cluster, or a snapshot file that no other process has open; the
last two need --limits, unless weir limits apply has put limits into the snapshot file. A flag takes precedence over both variables, and WEIR_SERVER over
WEIR_STORE. The bearer token for a server is in WEIR_TOKEN, or in a file named with
--token-file.`

// serverHelp is targetHelp for commands that only a server answers.
const serverHelp = `

The command asks the server at --server (or WEIR_SERVER; by default
` + DefaultServer + `). The bearer token for the server is in WEIR_TOKEN, or in a
file named with --token-file.`

// tableHelp is targetHelp for commands that administer the namespaces of a table.
const tableHelp = `

The command asks the server at --server (or WEIR_SERVER; by default
` + DefaultServer + `), which serves a DynamoDB table. With --store (or WEIR_STORE)
it opens the table itself, as in dynamodb://TABLE?region=eu-central-1, with credentials from the
AWS SDK's default chain. A flag takes precedence over both variables, and WEIR_SERVER over
WEIR_STORE. The bearer token for a server is in WEIR_TOKEN, or in a file named with
--token-file; it needs the role admin and all namespaces.`

// Access is what a command may do to its target.
type Access int

const (
	// Reads is for commands that change and create nothing.
	Reads Access = iota
	// Updates is for commands that change leases that must exist.
	Updates
	// Reserves is for commands that may create the state of a store.
	Reserves
	// Configures is for commands that change limits and entities.
	Configures
	// Applies is for the command that applies a limits file.
	Applies
	// Compares is for commands that read the whole configuration of a store, and what a limits file
	// manages in it.
	Compares
	// Watches is for commands that ask what a server does. A store has no answer.
	Watches
	// Divides is for commands that administer the namespaces of a table. The namespace in the URL
	// of the table need not exist.
	Divides
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
	// Idle is the number of idle connections to a server that are kept, at least 256. Default: 256
	Idle int
	// transport sends the requests to a server; nil before Dial.
	transport *serverTransport
}

// addTarget adds the flags that name the server or store to a command.
func addTarget(cmd *cobra.Command, does Access) *Target {
	t := &Target{does: does}
	t.AddServerFlags(cmd, "`URL` of the server to ask (default "+DefaultServer+")")
	flags := cmd.Flags()
	if does == Watches {
		cmd.Long += serverHelp
		return t
	}
	if does == Divides {
		cmd.Long += tableHelp
		flags.StringVar(&t.store, "store", "",
			"`URL` of a table to open instead, like dynamodb://TABLE")
		return t
	}
	cmd.Long += targetHelp
	flags.StringVar(&t.store, "store", "",
		"`URL` of a store to open instead, like dynamodb://TABLE or memory:?snapshot=FILE")
	flags.StringVar(&t.limits, "limits", "", "limits `FILE` for the store, or - for standard input")
	return t
}

// AddServerFlags adds the flags that name the server, and say how to reach it, to a command.
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
		return console.UsageError(cmd, "--server and --store cannot be combined: give one of them")
	case given("server") || given("store"):
	case env(ServerEnv) != "":
		t.Server = env(ServerEnv)
	case env(StoreEnv) != "" && t.does == Watches:
		return console.UsageError(cmd, "%s names a store, and only a server has an answer: name one with --server",
			StoreEnv)
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

// The default address of serve, and of the server for client commands. It is a loopback address, so
// other machines cannot reach it.
const (
	DefaultListen = "127.0.0.1:7117"
	DefaultServer = "http://" + DefaultListen
)

// Connection is an open connection to a server, or a store that is open for one command.
type Connection struct {
	Service weir.Service
	Admin   httpapi.Admin
	Records httpapi.Records
	Limits  httpapi.LimitsAdmin
	// Activity returns what a server has decided; nil on a store.
	Activity func(context.Context) (*httpapi.ActivityReport, error)
	// Namespaces is nil on a store, unless the command has the access [Divides].
	Namespaces namespace.Admin
	Close      func() error
	// OnServer reports whether the connection is to a server.
	OnServer bool
	// Notes are the notes of a server about the changes it made.
	Notes []string
}

// Note returns the last note of the server, for JSON.
func (c *Connection) Note() string {
	if len(c.Notes) == 0 {
		return ""
	}
	return c.Notes[len(c.Notes)-1]
}
