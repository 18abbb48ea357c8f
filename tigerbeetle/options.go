package tigerbeetle

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// Options tune a store. Nil means all defaults.
type Options struct {
	// Cluster is the ID of the cluster, from 0 to 2^128-1. Default: 0, which TigerBeetle reserves
	// for tests.
	Cluster *big.Int
	// Namespace is the isolated set of limits and leases that the store uses. Default: "default".
	Namespace string
	// Definitions are the limits and entities of this server's limits file. Default: none.
	Definitions *weir.Definitions
	// OnError is called with every error that occurs outside of calls; the store tries again by
	// itself. Default: nothing is called.
	OnError func(error)
	// Poll is how often the store checks whether other definitions are in force; if negative, it
	// never does. Default: 1 s.
	Poll time.Duration
	// Now is the process's clock. It only bridges the time between two answers of the cluster,
	// whose own clock counts. Default: [time.Now].
	Now func() time.Time
	// Follow never replaces definitions in force by the store's own: if others are in force, the
	// store is not ready. It is for commands that act once, next to servers that decide. Default:
	// false.
	Follow bool
	// PutInForce puts the definitions in force even if they were before and have been superseded,
	// to go back to an older limits file. Default: false.
	PutInForce bool
	// ReadOnly refuses whatever would change anything with [weir.Unsupported]. Default: false.
	ReadOnly bool
}
