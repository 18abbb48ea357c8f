package tigerbeetle

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// Options configure a store. Nil means all defaults.
type Options struct {
	// Cluster is the ID of the cluster, from 0 to 2^128-1. Default: 0, which TigerBeetle reserves
	// for tests.
	Cluster *big.Int
	// Namespace is the isolated set of limits and leases that the store uses. Default: "default".
	Namespace string
	// Definitions are the limits and entities of this server's limits file. Default: none.
	Definitions *weir.Definitions
	// OnError is called with every error that occurs outside calls; the store retries on its own.
	// Default: errors are ignored.
	OnError func(error)
	// Poll is how often the store checks whether other definitions are in force; if negative, it
	// never does. Default: 1 s.
	Poll time.Duration
	// WriteUsage is how often the store writes what its callers used, if they used anything; if
	// negative, only Close does. Default: 1 minute.
	WriteUsage time.Duration
	// Now is the process's clock. The store uses the cluster's clock, and Now only to measure how
	// long ago the cluster's last answer came. Default: [time.Now].
	Now func() time.Time
	// Follow keeps the store from replacing definitions that are in force with its own: if others
	// are in force, the store is not ready. It is for commands that act once, beside servers that
	// decide. Default: false.
	Follow bool
	// PutInForce puts the store's definitions in force even if they were in force before and have
	// been superseded, to go back to an older limits file. Default: false.
	PutInForce bool
	// ReadOnly refuses every call that would change anything, with [weir.Unsupported]. Default:
	// false.
	ReadOnly bool
}
