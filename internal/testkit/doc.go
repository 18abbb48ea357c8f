// Package testkit finds, fetches and starts what a test needs besides Go: a Python virtual
// environment, DynamoDB Local, a server that plays AWS, another process. What it fetches stays in
// an ignored folder of the module, so that the next run needs no network. Between a client of the
// AWS SDK and DynamoDB it can count ([Counter]) and make things go wrong ([Faults]). Connections in
// memory ([PipeListener]) stand in for a network.
//
// A test whose tool is missing is skipped with the reason. WEIR_TEST_REQUIRE, a list with commas of
// "python", "dynamodb" and "tigerbeetle", names the tools that must not be missing: without one of
// these the test fails instead. A TigerBeetle server is not started: WEIR_TEST_TIGERBEETLE says
// where one is, as HOST:PORT or HOST:PORT/CLUSTER.
package testkit
