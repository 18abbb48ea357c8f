// Package livetest tests callers that go away while their reservations are in flight. It checks
// that nothing stays charged: every slot is free and every unit is back within two seconds after
// the outcome of the last reservation was decided, unless an error reported that a settlement
// failed.
//
// The tests are a table. A cell combines a front, which is a way to reserve (the limiter itself,
// the HTTP client, Do, Wait, the middleware, the transport, and clients without a library), a
// store, one or two servers, and a network. A network may hold a reservation or its answer back for
// up to three seconds, while later messages on other connections arrive at once. The memory store
// and the TigerBeetle emulator run in virtual time; DynamoDB Local and a TigerBeetle server
// (WEIR_TEST_TIGERBEETLE) in real time.
//
// A world has the servers, the clients and the networks of a cell. A cell is played in waves of
// callers. Each caller has a plan: when it goes away, how long it works, and how it settles. After
// a wave, the units in use at the servers are compared with those that the remaining callers hold
// or have used.
//
// A plain run lets a few callers go away in each cell, and WEIR_SOAK=1 ten thousand. WEIR_TEST_SEED
// repeats the random choices of a run.
package livetest
