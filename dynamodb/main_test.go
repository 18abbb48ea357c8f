package dynamodb

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs twice as many tests in parallel as there are processors, because the tests wait for
// DynamoDB most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("4") // a number, so it cannot fail
	}
	os.Exit(m.Run())
}
