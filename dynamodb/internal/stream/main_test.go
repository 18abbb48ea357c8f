package stream_test

import (
	"os"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit/calls"
)

// callsFile has a row for each call that weir makes. It is in the folder of package provision, which
// makes the policies from it.
const callsFile = "../../../provision/calls.txt"

// TestMain compares the calls of all tests with the file of calls.
func TestMain(m *testing.M) {
	aggregate := func(verb string) bool { return verb == calls.Aggregate }
	os.Exit(calls.Compare(m.Run, callsFile, aggregate))
}
