// Package tigerbeetle keeps limits on a TigerBeetle cluster: every kind, all or nothing across
// limits and entities, for any number of servers, with leases that survive all of them.
//
// What is reserved stands on the cluster alone: one create_transfers call takes a reservation, one
// settles it, and any server can settle what another one took. Names are not on the cluster;
// limits and entities come from each server's limits file, and the file in force is the one that
// was put there last (docs/tigerbeetle.md).
//
// How it works: a limit of one (entity, resource) is an account, a reservation is a linked chain
// of transfers, a hold is a pending transfer that expires (docs/adr/0020-tigerbeetle-ledger.md).
// The [Store] is written on a [Ledger]: TigerBeetle's own client, or an [Emulator] of it in the
// process.
//
// The client needs cgo. In a binary that was built without, [Open] says so.
package tigerbeetle
