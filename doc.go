// Package weir defines the words and the contract of a rate limiter for calls to LLM APIs.
//
// Before a call, [Service.Reserve] takes what the call may use (requests, tokens, concurrency
// slots, money) from every limit that applies, or nothing at all, and returns a [Lease]. After the
// call, [Lease.Complete] replaces what was reserved by what was used, and [Lease.Cancel] gives
// everything back. [Do] does this around a function, and [Wait] retries a denied reservation until
// it fits.
//
// A denial is a [*DeniedError]. It says which limits denied, and when the same request would be
// admitted. Every other failure is an [*Error] with a [Code]; after [Unavailable] the outcome is
// unknown, and the call may be repeated with the same [LeaseID] without being charged twice.
//
// # Limits
//
// A [Limit] is a named rule of one of four kinds: a bucket regains units at a steady rate, each
// unit of a window returns after a fixed time, concurrency counts slots in use, and a budget starts
// again with each calendar period. Limits are configured for an entity (who calls) on a resource
// (what is called), for every resource of an entity, for every entity on a resource, or for the
// whole system. The first of these levels that has any limits applies as a whole. A request is
// judged by the limits that its costs name, and by all concurrency limits that apply. An entity may
// cascade to a parent, which is then charged too. [Definitions] is a whole configuration.
//
// # Packages
//
// Two packages implement [Service]: limiter in the process, over a store, and httpapi as the client
// of a server. The stores are memory, dynamodb and tigerbeetle; package store opens one by its URL.
// To write a store, start with package driver and docs/new-backend.md. The rules that hold on every
// store are in docs/semantics.md.
//
// Amounts are whole units. Instants are truncated to the millisecond.
package weir
