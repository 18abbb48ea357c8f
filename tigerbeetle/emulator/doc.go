// Package emulator is a TigerBeetle cluster in the process, without its disks: linked chains,
// pending transfers and their expiry, IDs that were used or have failed, balancing and closing, as
// release 0.17 has them. It is for tests, and for trying weir without a server. Everything is lost
// with the process.
//
// A call is judged event by event, in the order of the server's own checks (create.go,
// transfer.go, pending.go). What a linked chain changes is noted, and taken back if the chain
// fails. The clock is given, and pending transfers expire when the next call finds them due. The
// package's tests compare it with a real server, event by event.
//
// What weir does not use is left out: imported events, balances over time, change events.
//
// Like TigerBeetle's client, whose types it speaks, it is built with cgo only.
package emulator
