package tigerbeetle

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// Options tune a store. Nil means all defaults.
type Options struct {
	// Cluster is the ID of the cluster, from 0 to 2^128-1. Default: 0, which TigerBeetle means for
	// tests.
	Cluster *big.Int
	// Namespace is the world of limits and leases that the store sees. Default: "default".
	Namespace string
	// Definitions are the limits and entities of this server's limits file. Default: none.
	Definitions *weir.Definitions
	// OnError is told of what goes wrong outside of calls, each time it does; the store tries again by
	// itself. Default: nobody.
	OnError func(error)
	// Poll is how often the store looks whether other definitions are in force; below zero it never
	// does. Default: 1 s.
	Poll time.Duration
	// Now is the process's clock. It only bridges the time between two answers of the cluster, whose
	// own clock counts. Default: [time.Now].
	Now func() time.Time
	// Follow puts no definitions in force where others are: then the store is not ready. It is for
	// what acts once, beside servers that have the say. Default: false.
	Follow bool
	// PutInForce puts the definitions in force, also where they were before and have been
	// superseded: it goes back to an older limits file. Default: false.
	PutInForce bool
	// ReadOnly refuses whatever would change anything with [weir.Unsupported]. Default: false.
	ReadOnly bool
}
