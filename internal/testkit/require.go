package testkit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// requireVariable names the tools that must not be missing.
const requireVariable = "WEIR_TEST_REQUIRE"

// Require ends a test whose tool is missing: it skips the test with the reason, or fails it if
// WEIR_TEST_REQUIRE names the tool.
func Require(t testing.TB, tool, reason string) {
	t.Helper()
	if !Required(tool) {
		t.Skipf("%s is missing: %s", tool, reason)
	}
	t.Fatalf("%s is missing, and %s names it: %s", tool, requireVariable, reason)
}

// Required reports whether WEIR_TEST_REQUIRE names a tool.
func Required(tool string) bool { return names(os.Getenv(requireVariable), tool) }

// names reports whether a list, separated by commas, has a word.
func names(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool {
		return strings.TrimSpace(s) == word
	})
}
