package dynamodb

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/internal/testkit/calls"
)

// callsFile has a row for each call that weir makes. It is in the folder of package provision, which
// makes the policies from it.
const callsFile = "../provision/calls.txt"

// TestMain runs twice as many tests in parallel as there are processors, because the tests wait for
// DynamoDB most of the time. It compares the calls of all tests with the file of calls.
func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("4") // a number, so it cannot fail
	}
	// Some rows are the Python library's alone.
	python := sync.OnceValue(func() bool {
		_, err := testkit.OpenZAE(context.Background())
		return err == nil
	})
	others := func(verb string) bool { return verb != calls.Aggregate && python() }
	os.Exit(calls.Compare(m.Run, callsFile, others))
}
