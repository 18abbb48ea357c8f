// Package testkit finds, fetches and starts what a test needs besides Go: a Python virtual
// environment, another process. What it fetches stays in an ignored folder of the module, so that
// the next run needs no network.
//
// A test whose tool is missing is skipped with the reason. WEIR_TEST_REQUIRE, a list with commas,
// names the tools that must not be missing: without one of these the test fails instead.
package testkit
