// Package limiter is the engine between callers and a store.
//
// [New] makes a [Limiter] over a [driver.Store]:
//
//	l, err := limiter.New(store, nil)
//
// A reservation goes through the limiter as follows.
//
//  1. The request is checked and put into a common form (request.go, costs.go).
//  2. Its lease ID is looked up. A live lease is answered again if the request is the same, and refused otherwise; a
//     lease that has ended is refused (leases.go).
//  3. The limits of each subject, an entity on a resource, are resolved, from a cache if possible (resolve.go).
//     The takes of all limits are summed in a plan (plan.go).
//  4. The store judges the plan and takes all of it, or nothing (limiter.go). If it says that the plan is stale, the
//     limits are read again and the reservation is planned again.
//  5. The lease is kept until it ends, and remembered for a while after that (lease_entry.go, leases_ended.go).
//
// An update of a lease (adjust, complete, cancel, extend) finds the lease, turns the totals that
// the caller names into what the lease stands for on each limit (totals.go), and passes the changes
// to the store (update.go). Two calls with one lease ID wait for one another.
//
// If the store does not answer in time, the outcome is [weir.Unavailable], or a degraded lease if
// the policy allows it (unavailable.go).
//
// A limiter starts no goroutine of its own that outlives a call, except for reads that callers
// share. Leases expire when they are looked at.
package limiter
