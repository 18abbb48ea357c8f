package dynamodb

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
)

// costOfLimits is a row of the table of sizes: an item with a number of limits, its size and its
// costs.
type costOfLimits struct {
	limits int
	bytes  int
	// seed is the size and the cost in ADR-115.
	seed       string
	full, lean int64 // write units of a warm reservation that names all limits, in thousandths
}

// String returns the row in Markdown.
func (c *costOfLimits) String() string {
	return fmt.Sprintf("| %d | %d | %s | %s | %s |\n",
		c.limits, c.bytes, c.seed, inUnits(c.full), inUnits(c.lean))
}

// TestCostOfLimits checks that the number of limits changes the size of an item and not the number
// of calls.
func TestCostOfLimits(t *testing.T) {
	t.Parallel()
	full, lean := costKinds(t)
	docs := costDocs(t)
	var b strings.Builder
	for _, want := range []costOfLimits{
		{limits: 1, bytes: 374, seed: "", full: 2000, lean: 1000},
		{limits: 2, bytes: 426, seed: "520 B, 1", full: 2000, lean: 1000},
		{limits: 5, bytes: 597, seed: "835 B, 1", full: 2000, lean: 1000},
		{limits: 10, bytes: 917, seed: "1.4 KB, 2", full: 2000, lean: 1000},
	} {
		got := want
		got.bytes, got.full = limitsOn(t, full, want.limits)
		_, got.lean = limitsOn(t, lean, want.limits)
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		b.WriteString(got.String())
		docs.has(t, got.String())
	}
	t.Logf("\n| limits | bytes | ADR-115 | full table | lean table |\n|--:|--:|--:|--:|--:|\n%s", &b)
}

// TestCostOfIndexes checks how the units of a bucket's writes divide among the table and its
// indexes.
func TestCostOfIndexes(t *testing.T) {
	t.Parallel()
	full, lean := costKinds(t)
	made := map[string]testkit.Capacity{
		"GSI2": {WriteMilli: 1000}, "GSI3": {WriteMilli: 1000}, "GSI4": {WriteMilli: 1000},
	}
	for _, tc := range []struct {
		name  string
		table *Table
		warm  map[string]testkit.Capacity
	}{
		{"full", full, map[string]testkit.Capacity{"GSI2": {WriteMilli: 1000}}},
		{"lean", lean, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newCostWorld(t, tc.table, processLeases)
			s.twoLimits()
			p := s.first
			p.reset()
			p.take("solo", one())
			p.settled()
			put := p.calls.Snapshot()["PutItem"]
			if put.Tables.WriteMilli != 1000 || !maps.Equal(put.Indexes, made) {
				t.Errorf("made: got %+v, want one unit each for the table and %v", put, made)
			}
			p.reset()
			p.take("solo", one())
			p.settled()
			update := p.calls.Snapshot()["UpdateItem"]
			if update.Tables.WriteMilli != 1000 || !maps.Equal(update.Indexes, tc.warm) {
				t.Errorf("written: got %+v, want one unit for the table, and %v", update, tc.warm)
			}
		})
	}
}

// limitsOn makes each kind of call on an item with n limits. It returns the item's size and the
// cost of a warm reservation.
func limitsOn(t *testing.T, table *Table, n int) (bytes int, milli int64) {
	t.Helper()
	s := newCostWorld(t, table, processLeases)
	names := []string{
		"rpm", "tpm", "rpd", "tpd", "images", "audio", "input", "output", "cached", "batch",
	}
	var limits []weir.Limit
	costs, lower, much := weir.Costs{}, weir.Costs{}, weir.Costs{}
	for _, name := range names[:n] {
		limits = append(limits, perMinute(name, 10_000))
		costs[name], lower[name], much[name] = 137, 42, 10_000
	}
	s.first.set("", costResource, limits...)
	p := s.join()
	var lease *weir.Lease
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { p.take("user-123", costs) }, "2 BatchGetItem, 1 PutItem, 1 UpdateItem (1 refused)"},
		{func() { lease = p.take("user-123", costs) }, "1 UpdateItem"},
		{func() { p.refused("user-123", much) }, "1 UpdateItem (1 refused)"},
		{func() { p.refused("user-123", much) }, "none"},
		{func() {
			if _, err := lease.Complete(t.Context(), lower); err != nil {
				t.Fatal(err)
			}
		}, "1 UpdateItem"},
		{func() { p.take("user-123", costs) }, "1 UpdateItem"},
	} {
		p.settled()
		p.reset()
		step.do()
		p.settled()
		if got := inCalls(p.calls.Snapshot()); got != step.want {
			t.Errorf("%d limits: got %s, want %s", n, got, step.want)
		}
	}
	return itemBytes(s.item("user-123", 0)), p.units(p.calls.Snapshot()).write
}

// itemBytes returns the size of an item by DynamoDB's rules.
func itemBytes(item schema.Item) int {
	n := 0
	for name, value := range item {
		n += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			digits := strings.Trim(strings.TrimPrefix(v.Value, "-"), "0")
			n += (len(digits)+1)/2 + 1
			if strings.HasPrefix(v.Value, "-") {
				n++
			}
		case *types.AttributeValueMemberB:
			n += len(v.Value)
		default: // a boolean
			n++
		}
	}
	return n
}
