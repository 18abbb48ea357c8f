// Package tigerbeetle is the store that keeps limits and leases on a TigerBeetle cluster. It
// enforces every kind of limit, takes a reservation atomically across limits and entities, and
// serves any number of weir servers. A lease outlives the server that reserved it.
//
// Only the cluster knows what is in use. It holds no names: limits and entities come from each
// server's limits file, and the definitions that a server put in force last count
// (docs/tigerbeetle.md, version.go). A limit of one subject is an account. A reservation is a
// linked chain of transfers, and a slot or a unit of a window is a pending transfer that expires
// (docs/adr/0020-tigerbeetle-ledger.md, layout.go). The [Store] reaches the cluster through a
// [Ledger]: TigerBeetle's own client, or the emulator in package emulator.
//
// A reservation goes through the store as follows.
//
//  1. The plan. The engine passes a [driver.Plan] to [Store.Reserve]. If an earlier reservation
//     with the same lease ID was abandoned by its caller, the call waits until its outcome is
//     known (abandoned.go). If definitions other than this server's are in force, the call is
//     refused (version.go, docs/adr/0029-superseded-limits.md). The plan is then copied into a
//     reserveOp, because its chain may outlive the call, and each take gets its limitState, this
//     server's estimate of one limit (limit_state.go, estimate.go).
//  2. Accounts. The store reads the limits that it does not know or whose estimate is uncertain,
//     and creates missing accounts (provision.go, read.go). If a budget's period may have ended on
//     the cluster's clock, it asks for the time first (clock.go, docs/adr/0028-cluster-time.md).
//  3. Memory. A request that needs as much as one that was denied within the last second may be
//     denied without asking the cluster (denial.go).
//  4. The chain. One create_transfers call funds new accounts, writes the lease's header, moves
//     the refill anchors of buckets, and checks and takes each limit (reserve.go, chain.go,
//     anchor.go). Of the calls of this process that use a bucket at the same time, one moves its
//     anchor; the others wait for it or go without.
//  5. The result. If every event succeeded, the estimates are updated and the outcome is written.
//     If another server moved an anchor first, or the IDs of the attempt are used up, the chain is
//     built and sent again, 16 times at most; after that the request is denied as contended. If
//     the header exists, the lease was reserved before and the call is a replay (replay.go).
//  6. A denial. The cluster names only the first limit that is exceeded. Before it denies, the
//     store looks up the other limits that its estimates call exceeded, and reads what their
//     retry-after needs: anchors, periods, and the ends of slots and windows (denial.go, read.go).
//
// If the caller's context ends while the chain is in flight, the reservation continues without the
// caller and is withdrawn if it succeeds and no repeat adopts it (abandoned.go,
// docs/adr/0026-abandoned-reservations.md).
//
// An update of a lease is one chain too (update.go, update_chain.go). The chain of the reservation
// makes the lease's token, a pending transfer. Each update ends the token and, unless it ends the
// lease, makes a new one; so of two servers that update a lease at the same time only one succeeds.
// A server that does not know a lease rebuilds it from the lease's transfers (lease_history.go).
//
// What callers used is summed in memory (usage.go) and written once a minute (usage_write.go,
// docs/adr/0039-usage-on-the-ledger.md).
//
// A limitState's mutex guards its estimate and is never held during a call to the cluster. What
// chains in flight may change is counted beside the estimate. A bucket's anchor is claimed by one
// call at a time (claimAnchors). Abandoned reservations, the version in force, and the clock each
// have a mutex of their own.
//
// After a crash everything is on the cluster, leases included. A reservation that was abandoned
// when its server died stays charged, and its slots return after their timeout.
//
// The client needs cgo. In a binary that was built without cgo, [Open] returns an error.
package tigerbeetle
