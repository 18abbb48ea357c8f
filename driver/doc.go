// Package driver defines what a store implements, and the data that the engine and a store
// exchange.
//
// Callers do not need this package: they open a store and pass it to limiter.New. To write a store,
// implement [Store] and those of the interfaces in ability.go that the store supports.
// docs/new-backend.md is a guide, the example of this package is a small store, and package
// conformance has the suite that every store must pass.
//
// # A reservation
//
// The engine resolves a request into a [Plan]. A plan has a [Take] for each limit that is asked for
// units: the limit, the ceiling that the use must not exceed, and the sum of the costs in [Part]s,
// one for each charge that names the limit. [Store.Reserve] takes all of it or nothing, and fills
// in an [Outcome]: the status of each limit and, if the plan is admitted, a [Taken] for each take.
//
// # The life of a lease
//
// The engine keeps what a lease stands for on each limit as a [Holding]: the take, and the [Piece]s
// in which the store has recorded the units. Pieces mean nothing to the engine. To change the
// lease, the engine computes an [Update] with one [Change] for each holding, from a number of units
// to another, and [Store.Update] applies it. A store with the optional [LeaseRecoverer] also
// returns a lease as a [LeaseRecord] to a process that does not remember it.
//
// If a plan or an update is out of date, the store applies nothing and returns a [*StaleError]. The
// engine then reads the configuration or takes the lease from the error, and repeats the call.
//
// # Concurrency
//
// A store is called by many goroutines at once. The engine never makes two calls for one lease at a
// time and has no mutex locked during a call, so a store may wait. Processes that share a store do
// not coordinate: the store alone makes their calls atomic.
//
// # Memory
//
// Plans, updates, outcomes and their slices belong to the engine, which uses their memory again
// after the call. A store that reads them after it has returned must copy what it needs.
// Definitions (*weir.Limit) and strings never change and may be kept.
package driver
