package cli

import (
	"github.com/spf13/cobra"
)

// The environment of the commands that ask or act once.
const (
	serverEnv = "WEIR_SERVER"
	storeEnv  = "WEIR_STORE"
	tokenEnv  = "WEIR_TOKEN"
)

// targetHelp ends the help of every command that asks or acts once.
const targetHelp = `

The command asks the server at --server (or WEIR_SERVER; by default
` + defaultServer + `). With --store (or WEIR_STORE) it opens a store itself: a
DynamoDB table, a TigerBeetle cluster, or a snapshot file that no other process has open; the
last two need --limits. A flag takes precedence over both variables, and WEIR_SERVER over
WEIR_STORE. The bearer token for a server is in WEIR_TOKEN, or in a file named with
--token-file.`

// access says what a command does where it goes.
type access int

const (
	// reads changes and creates nothing.
	reads access = iota
	// settles changes what must be there already.
	settles
	// reserves may begin the state of a store.
	reserves
	// configures changes limits and entities.
	configures
)

// target is where a command goes.
type target struct {
	does access

	server    string
	store     string
	limits    string
	tokenFile string
	caCert    string

	byDefault bool // nobody named the server
	anonymous bool // no bearer token was given
	// transport is how a server is reached; nil before.
	transport *serverTransport
}

// addTarget gives a command the flags that say where it goes.
func addTarget(cmd *cobra.Command, does access) *target {
	t := &target{does: does}
	cmd.Long += targetHelp
	flags := cmd.Flags()
	flags.StringVar(&t.server, "server", "", "`URL` of the server to ask (default "+defaultServer+")")
	flags.StringVar(&t.tokenFile, "token-file", "", "`FILE` with the bearer token for the server")
	flags.StringVar(&t.caCert, "ca-cert", "",
		"`FILE` of certificates (PEM) to trust instead of the system's")
	flags.StringVar(&t.store, "store", "",
		"`URL` of a store to open instead, like dynamodb://TABLE or memory:?snapshot=FILE")
	flags.StringVar(&t.limits, "limits", "", "limits `FILE` for the store, or - for standard input")
	return t
}

// resolve decides between a server and a store, and refuses flags of the other one.
func (t *target) resolve(cmd *cobra.Command, env func(string) string) error {
	given := cmd.Flags().Changed
	switch {
	case given("server") && given("store"):
		return misused(cmd, "--server and --store are two places: give one of them")
	case given("server") && t.server == "":
		return misused(cmd, "--server must not be empty")
	case given("store") && t.store == "":
		return misused(cmd, "--store must not be empty")
	case given("server") || given("store"):
	case env(serverEnv) != "":
		t.server = env(serverEnv)
	case env(storeEnv) != "":
		t.store = env(storeEnv)
	default:
		t.server, t.byDefault = defaultServer, true
	}
	foreign, reason := []string{"limits"}, "is for --store: a server has limits of its own"
	if t.store != "" {
		foreign, reason = []string{"token-file", "ca-cert"}, "is for a server, not for --store"
	}
	for _, name := range foreign {
		if given(name) {
			return misused(cmd, "--%s %s", name, reason)
		}
	}
	return nil
}
