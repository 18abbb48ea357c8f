// Package testkit finds, fetches and starts the tools that a test needs besides Go: a Python
// virtual environment ([Python]), DynamoDB Local ([DynamoDB]), a server that emulates other
// services of AWS ([Moto]), and other processes ([Start]). Fetched files stay in an ignored folder
// of the module, so that the next run needs no network; a lock file there makes other processes
// wait while one fetches.
//
// Between a client of the AWS SDK and DynamoDB, a [Counter] counts calls and capacity, and [Faults]
// inject failures, such as lost answers. Both are options of the client. Connections in memory
// ([PipeListener]) replace a network in a bubble of testing/synctest.
//
// One DynamoDB Local serves all tests of a process and of the processes that it starts: the first
// test starts it and records its address in an environment variable. It is a guarded process: a
// guard between the two kills it when this process ends, even if this process is killed.
//
// A test whose tool is missing is skipped with the reason. WEIR_TEST_REQUIRE, a list, separated by
// commas, of "python", "dynamodb" and "tigerbeetle", names required tools: if one of them is
// missing, the test fails instead. The package does not start a TigerBeetle server:
// WEIR_TEST_TIGERBEETLE has the address of one, as HOST:PORT or HOST:PORT/CLUSTER.
package testkit
