// Package tigerbeetle keeps limits on a TigerBeetle cluster: every kind, all or nothing across
// limits and entities, for any number of servers, with leases that survive all of them.
//
// The cluster alone knows what is reserved: one create_transfers call reserves, one more completes
// or cancels, and any server can update the lease of another. Names are not on the cluster; limits
// and entities come from each server's limits file, and the last file that was put in force counts
// (docs/tigerbeetle.md).
//
// How it works: a limit of one (entity, resource) is an account, a reservation is a linked chain
// of transfers, a hold is a pending transfer that expires (docs/adr/0020-tigerbeetle-ledger.md).
// The [Store] uses a [Ledger]: TigerBeetle's own client, or the emulator in package emulator.
//
// The client needs cgo. In a binary that was built without cgo, [Open] fails and says so.
package tigerbeetle
