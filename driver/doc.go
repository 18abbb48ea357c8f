// Package driver defines what a store implements, and the data that the engine and a store
// exchange.
//
// Callers do not need this package: they open a store and give it to limiter.New. To write a store,
// implement [Store] and those of the further interfaces that the store supports;
// docs/new-backend.md is a guide, and package conformance has the suite that every store must pass.
//
// Data goes down once and comes up once. The engine resolves a request into a [Plan]: the takes,
// each of which asks units of one limit under a ceiling. [Store.Reserve] judges the plan, takes all
// or nothing, and fills in an [Outcome]. The engine keeps what was taken as the [Holding] of a
// lease. When the lease changes, the engine computes an [Update] with one [Change] for each
// holding, and [Store.Update] applies it. If a plan or an update is out of date, the store applies
// nothing and returns a [*StaleError]; the engine reads again and repeats the call.
//
// Plans, updates, outcomes and their slices belong to the engine, which uses their memory again
// after the call. A store that goes on working after it has returned copies what it needs.
// Definitions (*weir.Limit) and strings never change and may be kept.
package driver
