// Package livetest tests what weir does when processes are killed: weir servers in the middle of
// reservations, and TigerBeetle itself under load. From what each caller was told it checks that no
// limit was exceeded, that nothing was charged twice or lost, and that everything recovers without
// help. The tests need a TigerBeetle server (WEIR_TEST_TIGERBEETLE, as HOST:PORT or
// HOST:PORT/CLUSTER), and one of them an executable that it may start
// (WEIR_TEST_TIGERBEETLE_BINARY). Each test uses a namespace of its own.
package livetest
