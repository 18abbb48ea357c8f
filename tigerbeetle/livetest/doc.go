// Package livetest kills what weir runs on: weir servers in the middle of reservations, and
// TigerBeetle itself under load. It then checks from what each caller was told that no limit was
// exceeded, that nothing was charged twice or lost, and that all of it goes on by itself.
//
// The tests need a TigerBeetle server (WEIR_TEST_TIGERBEETLE, as HOST:PORT or HOST:PORT/CLUSTER),
// and one of them an executable that it may start (WEIR_TEST_TIGERBEETLE_BINARY). Each takes a
// namespace of its own.
package livetest
