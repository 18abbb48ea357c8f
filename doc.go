// Package weir defines the vocabulary and the contract of a rate limiter for calls to LLM APIs.
//
// Before a call, [Service.Reserve] takes what the call may use (requests, tokens, concurrency
// slots, money) from every limit that applies, or nothing at all, and returns a [Lease]. After the
// call, [Lease.Complete] replaces what was reserved with what was used, and [Lease.Cancel] gives
// everything back. [Do] does this around a function, and [Wait] retries a denied reservation until
// it fits.
//
// A denial is a [*DeniedError]. It says which limits denied, and when the same request would be
// admitted. Every other failure is an [*Error] with a [Code]. After [Unavailable] the outcome is
// unknown, and the call may be repeated with the same [LeaseID] without being charged twice. (On
// DynamoDB this does not hold for a reserve whose write was not answered.)
//
// # Limits
//
// A [Limit] is a named rule of one of four kinds. A bucket regains units at a steady rate. Each
// unit of a window returns after a fixed time. A concurrency limit counts slots, which return when
// their lease ends. A budget starts again with each calendar period.
//
// Units are counted for a subject, which is an entity (such as a team or a user) on a resource
// (such as a model): two users of one model do not share a limit, nor do two models of one user.
// Limits are configured for a subject, for every resource of an entity, for every entity on a
// resource, or for the whole system. The first of these levels that has any limits applies as a
// whole. [Definitions] is a whole configuration.
//
// A request names its costs by limit. It is judged and charged by the limits that it names and by
// all concurrency limits that apply; a limit that it does not name is not charged. An entity may
// cascade to a parent, which is then charged too.
//
// # Leases
//
// A lease ends when it is completed or cancelled, or by itself after its lifetime. While it lives,
// [Lease.Extend] renews it, and [Lease.Adjust] changes what it stands for, for example while a
// response is streamed. These updates are never denied: what was used counts, even beyond a limit.
// An ended lease is remembered for a while, so that a repeated call gets the same answer.
//
// If a process dies before it has settled a lease, what the lease reserved stays charged, and its
// slots return after their timeout. Which store keeps counts and leases when the limiter's own
// process ends is in section 12 of docs/semantics.md.
//
// # Packages
//
// Two packages implement [Service]: limiter in the process, over a store, and httpapi as the client
// of a server. The stores are memory, dynamodb and tigerbeetle; package store opens one by its URL.
// To write a store, start with package driver and docs/new-backend.md. The rules that hold on every
// store are in docs/semantics.md, and docs/internals.md follows a reservation through the code.
//
// Amounts are whole units. Instants are truncated to the millisecond.
package weir
