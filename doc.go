// Package weir limits calls to LLM APIs.
//
// Before a call, [Limiter.Reserve] takes what the call may use (requests, tokens, a concurrency
// slot, money) on every limit that applies, or nothing at all. After the call, [Lease.Complete]
// replaces what was reserved by what was really used. A denial is a [*DeniedError]: it cannot be
// mistaken for success, and it says which limit denied and when the same request would fit.
//
// The package has two seams. [Service] is what callers speak: [*Limiter] fulfils it in process,
// a client may fulfil it over a wire. [Backend] is what a store offers to the limiter; the
// limiter resolves limits, expands nothing a store knows better, keeps the leases and decides
// what happens when a store does not answer. The rules that hold on every store are in
// docs/semantics.md; a new store starts at docs/new-backend.md.
//
// Amounts are whole units (int64). Instants are taken to the millisecond they fall in.
package weir
