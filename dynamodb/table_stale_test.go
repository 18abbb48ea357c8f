package dynamodb

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/testkit"
)

// staleDescriptions is a transport that answers a number of descriptions after the deletion of a
// table with the one from before.
type staleDescriptions struct {
	base    http.RoundTripper
	before  string
	lag     int
	deleted bool
	asked   int // the number of descriptions after the deletion
}

func (l *staleDescriptions) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	describes := operation == "DescribeTable"
	if l.deleted && describes {
		l.asked++
		if l.asked <= l.lag {
			return script(answerWith(http.StatusOK, l.before)).RoundTrip(r)
		}
	}
	l.deleted = l.deleted || operation == "DeleteTable"
	answer, err := l.base.RoundTrip(r)
	if err != nil || !describes || l.deleted {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	l.before, answer.Body = string(body), io.NopCloser(strings.NewReader(string(body)))
	return answer, nil
}

// through returns the table with another transport.
func (t *Table) through(network http.RoundTripper) *Table {
	o := *t.Options
	o.HTTP = &http.Client{Transport: network}
	return &Table{Name: t.Name, NoStream: t.NoStream, Options: &o}
}

// TestTableStaleDescription checks that Create waits for a table that the descriptions do not show
// yet, and Delete for one that they still show.
func TestTableStaleDescription(t *testing.T) {
	t.Parallel()
	table := localTable(t)
	faults := testkit.NewFaults(&testkit.FaultOptions{Rules: []testkit.FaultRule{{
		Fault: testkit.Refuse, Code: "ResourceNotFoundException", PerMille: 1000, Most: 2,
		Match: func(r *testkit.FaultRequest) bool { return r.Operation == "DescribeTable" },
	}}})
	made, err := table.through(faults).Create(t.Context())
	if err != nil || !made || faults.Count(testkit.Refuse) != 2 {
		t.Fatalf("create: got %t, %v after %d refusals", made, err, faults.Count(testkit.Refuse))
	}
	network := &staleDescriptions{base: testkit.NewFaults(nil), lag: 2}
	if err := table.through(network).Delete(t.Context()); err != nil || network.asked != 3 {
		t.Errorf("delete: got %v after %d descriptions, want three", err, network.asked)
	}
	_, err = table.Describe(t.Context())
	wantError(t, err, weir.NotFound, "store.table", "does not exist")
}

// TestTableStaleDescriptionTimeout checks that these waits end.
func TestTableStaleDescriptionTimeout(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	network := &staleDescriptions{base: testkit.NewFaults(nil)}
	if _, err := table.through(network).Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	there, done := answerWith(http.StatusOK, network.before), answerWith(http.StatusOK, "{}")
	synctest.Test(t, func(t *testing.T) {
		never := script(done, fails("ResourceNotFoundException", ""))
		_, err := table.through(never).Create(t.Context())
		wantError(t, err, weir.NotFound, "store.table", "does not exist")
		always := script(there, done, there)
		err = table.through(always).Delete(t.Context())
		wantError(t, err, weir.Conflict, "store.table", "its status is ACTIVE")
		if n, m := never.asked.Load(), always.asked.Load(); n != tables.MaxStale+2 || m != tables.MaxStale+3 {
			t.Errorf("got %d and %d calls, want %d and %d", n, m, tables.MaxStale+2, tables.MaxStale+3)
		}
	})
}
