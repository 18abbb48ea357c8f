// Package emulator is a TigerBeetle cluster inside the process, without disks. It has linked
// chains, pending transfers and their expiry, IDs that are used up because a transfer failed,
// balancing and closing, as in release 0.17. It is for tests and for trying weir without a
// TigerBeetle server. Everything is lost when the process ends.
//
// An [Emulator] implements tigerbeetle.Ledger. One mutex serializes its calls. A call that creates
// goes through these steps:
//
//  1. enter expires the pending transfers that are due at the given clock (pending.go). Nothing
//     expires between calls.
//  2. create reserves a timestamp for each event (emulator.go).
//  3. chains carries the events out in order (create.go). While a linked chain is open, a
//     chainScope records the former values of everything that it changes; if the chain fails, they
//     are restored.
//  4. Each event is judged by the server's own checks in the server's order, because the first
//     check that fails determines the status (transfer.go, pending.go).
//
// The package's tests make the same random calls on a real server and compare statuses, timestamps,
// accounts and transfers.
//
// The emulator leaves out what weir does not use: imported events, balance history, and change
// events.
//
// Like TigerBeetle's client, whose types it uses, it is built with cgo only.
package emulator
