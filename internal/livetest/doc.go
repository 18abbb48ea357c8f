// Package livetest lets callers go away while their reservations are on the way, and then checks
// that nothing is left behind: every slot is free and every unit is back within two seconds after
// the fate of the last reservation was decided, unless the caller was told that it failed.
//
// The tests take every way to reserve (the limiter itself, the HTTP client, Do, Wait, the
// middleware, the transport, and clients without a library), every store, one server and two, and
// networks that hold a reservation or its answer back for up to three seconds while what is sent
// after it, on another connection, arrives at once. The memory store and the TigerBeetle emulator
// run in virtual time; DynamoDB Local and a TigerBeetle server (WEIR_TEST_TIGERBEETLE) in real
// time.
//
// A plain run lets a few callers go away in each cell of the table, WEIR_SOAK=1 ten thousand.
// WEIR_TEST_SEED repeats the random choices of a run.
package livetest
