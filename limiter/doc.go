// Package limiter implements [weir.Service] in the process, over a store.
//
// [New] makes a [Limiter] over a [driver.Store]:
//
//	l, err := limiter.New(store, nil)
//
// # A reservation
//
// [Limiter.Reserve] takes a request through these steps:
//
//  1. Check the request and normalize it: charges, costs as sorted lists, brought limits, and a
//     fingerprint of all three (request.go, costs.go, fingerprint.go).
//  2. Look up the lease ID. A live lease is returned again if the fingerprint is the same, and is
//     a conflict otherwise. An ended lease is refused (leases.go).
//  3. Resolve the limits of each subject (an entity on a resource), from a cache if possible, and
//     sum the costs that fall on each limit in a [driver.Plan] (resolve.go, plan.go).
//  4. Let the store judge the plan: it takes everything or nothing. If it answers that the plan is
//     stale, read the configuration again and repeat with a new plan (limiter.go).
//  5. Keep the lease until it ends, and remember it for a while after that, so that a repeated
//     call gets the same answer (lease_entry.go, leases_ended.go).
//
// An update of a lease (adjust, complete, cancel or extend) finds the lease, converts the totals
// that the caller names into what the lease stands for on each limit (totals.go), and passes the
// changes to the store (update.go). If another server has changed the lease, the store returns it
// as it is now, and the update is computed again (leases_shared.go).
//
// If the store does not answer in time, Reserve returns [weir.Unavailable], or a degraded lease if
// the policy allows it (unavailable.go).
//
// # State and locks
//
// A Limiter keeps no counts of its own. It keeps leases and resolutions:
//
//   - leaseTable has the leases, in segments chosen by the hash of the lease ID. Each segment has a
//     mutex for its maps and lists. An entry belongs to the call that acquired it until the call
//     releases it; other calls with the same lease ID wait. The call does not hold the segment's
//     mutex meanwhile, so that a slow store delays one lease and not a segment.
//   - resolutionCache has the resolutions, in segments chosen by the entity, each with a mutex.
//     Dropping the cache starts a new generation; a read that began in an earlier generation is
//     not stored.
//   - sharedReads has the reads of the configuration that are in progress, so that reservations
//     that need the same subject at the same time share one read. Its mutex is locked before a
//     cache segment's, never after.
//   - scratch is the working memory of one call. It is pooled and needs no lock.
//
// No mutex is locked during a call to the store. A change of the configuration holds configLock, a
// semaphore, which delays only other changes of the configuration.
//
// A Limiter starts no background goroutine: the only goroutines that may outlive a call are shared
// reads, which end with the store's timeout. Expired leases are found when they are looked up, or
// when a later call sweeps its segment.
//
// # After a crash
//
// The lease table is lost with the process. If the store is a [driver.LeaseRecoverer], the next
// limiter gets each lease from it when a call names the lease. Otherwise the leases are unknown,
// what they reserved stays charged, and IDs made before the limiter was opened are refused, because
// they may have been used.
package limiter
