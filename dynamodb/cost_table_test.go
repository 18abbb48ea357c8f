package dynamodb

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/testkit"
)

// costRow is a row of the table of costs in docs/dynamodb.md.
type costRow struct {
	what string
	// python is the cost of the same call in the Python library 0.17, if known: the calls, then the
	// write units on its table.
	python string
	// tune sets options of the measured process.
	tune func(*Options)
	// prepare sets up the state before the call, and returns the measured process.
	prepare func(s *costWorld) *costProcess
	do      func(s *costWorld, p *costProcess)
	// later selects the requests that the answer does not wait for. They are held until the answer
	// is there.
	later func(sentRequest) bool
	// before and after are the calls until the answer, and the calls that were held.
	before, after string
	// full and lean are the sums of units consumed on the two kinds of table.
	full, lean costUnits
}

// costUnits are read and write units in thousandths. A refused write counts as one unit, which
// DynamoDB charges and does not report.
type costUnits struct{ read, write int64 }

// costKinds returns a table of each of the two kinds.
func costKinds(t *testing.T) (full, lean *Table) {
	t.Helper()
	lean = localTable(t)
	lean.Lean = true
	if _, err := lean.Create(t.Context()); err != nil {
		t.Fatalf("create: %v", err)
	}
	return madeTable(t), lean
}

// processCosts returns the rows of the table for leases=process.
func processCosts() []costRow {
	return slices.Concat(
		flatCosts(), unknownCosts(), deniedCosts(), settleCosts(), cascadeCosts(), familyCosts(),
		togetherCosts(), readingCosts(), shardCosts(),
	)
}

// TestCosts counts the calls and the units of each kind of call of a limiter, and compares them
// with the tables in the docs.
func TestCosts(t *testing.T) {
	t.Parallel()
	full, lean := costKinds(t)
	docs := costDocs(t)
	var process, table strings.Builder
	for _, r := range processCosts() {
		t.Run(r.what, func(t *testing.T) {
			t.Parallel()
			r.on(t, full, r.full, processLeases)
			r.on(t, lean, r.lean, processLeases)
		})
		docs.has(t, r.String())
		process.WriteString(r.String())
	}
	for _, r := range leaseRows() {
		t.Run("leases=table: "+r.what, func(t *testing.T) {
			t.Parallel()
			r.on(t, full, r.full)
			r.on(t, lean, r.lean)
		})
		docs.has(t, r.String())
		table.WriteString(r.String())
	}
	t.Logf("\n%s%s\n%s%s", leaseHeader, &table, costHeader, &process)
}

// costPage is the page with the tables of costs.
type costPage string

func costDocs(t *testing.T) costPage {
	t.Helper()
	page, err := os.ReadFile("../docs/dynamodb.md")
	if err != nil {
		t.Fatal(err)
	}
	return costPage(page)
}

// has fails the test if the page does not have a line.
func (p costPage) has(t *testing.T, line string) {
	t.Helper()
	if !strings.Contains(string(p), line) {
		t.Errorf("docs/dynamodb.md does not have the line\n%s", line)
	}
}

const costHeader = "| what | calls until the answer | and after it | read units " +
	"| write units: full table | lean table | Python 0.17 |\n|---|---|---|--:|--:|--:|---|\n"

// String returns the row in Markdown.
func (r *costRow) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", r.what, r.before, r.after,
		inUnits(r.full.read), inUnits(r.full.write), inUnits(r.lean.write), r.python)
}

// inUnits formats thousandths as a decimal number.
func inUnits(milli int64) string {
	s := fmt.Sprintf("%d.%03d", milli/1000, milli%1000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// on measures the row on one kind of table.
func (r *costRow) on(t *testing.T, table *Table, want costUnits, tune ...func(*Options)) {
	t.Helper()
	before, after, units := r.measure(t, table, tune)
	if before != r.before || after != r.after || units != want {
		t.Errorf("lean %t: got %q, then %q, %+v;\nwant %q, then %q, %+v",
			table.Lean, before, after, units, r.before, r.after, want)
	}
}

// measure runs the row in a world of its own.
func (r *costRow) measure(
	t *testing.T, table *Table, tune []func(*Options),
) (before, after string, units costUnits) {
	t.Helper()
	if r.tune != nil {
		tune = append(tune, r.tune)
	}
	s := newCostWorld(t, table, tune...)
	p := r.prepare(s)
	s.first.settled()
	p.settled()
	answered := make(chan struct{})
	if r.later != nil {
		p.wire.hold(func(sent sentRequest) {
			if r.later(sent) {
				<-answered
			}
		})
	}
	p.reset()
	r.do(s, p)
	if r.later == nil {
		p.settled()
		counts := p.calls.Snapshot()
		return inCalls(counts), "", p.units(counts)
	}
	first := p.calls.Snapshot()
	p.calls.Reset()
	close(answered)
	p.settled()
	p.wire.hold(nil)
	then := p.calls.Snapshot()
	a, b := p.units(first), p.units(then)
	return inCalls(first), inCalls(then), costUnits{a.read + b.read, a.write + b.write}
}

// reset sets the counters to zero.
func (p *costProcess) reset() {
	p.calls.Reset()
	p.wire.reset()
}

// units returns the units that calls consumed. Of the items of a transaction that cost the same,
// DynamoDB Local 3.1 reports only one. So each item of a transaction counts as the two units that
// it costs, and the units reported of the indexes count for each bucket item: in these rows the
// bucket items of a transaction cost the same, and other items are in no index.
func (p *costProcess) units(c testkit.Counts) costUnits {
	const transactional = "TransactWriteItems"
	units := costUnits{write: 1000 * refusedWrites(c)}
	for name, op := range c {
		units.read += op.Capacity.ReadMilli
		if name != transactional {
			units.write += op.Capacity.WriteMilli
		}
	}
	var indexes int64
	for _, of := range c[transactional].Indexes {
		indexes += of.WriteMilli
	}
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	for _, r := range p.wire.seen {
		if r.operation == transactional {
			units.write += 2000*r.items + indexes*r.buckets
		}
	}
	return units
}

// refusedWrites returns the number of writes that a condition refused.
func refusedWrites(c testkit.Counts) int64 {
	errs := c.Total().Errors
	return errs["ConditionalCheckFailedException"]
}

// inCalls formats the calls by operation, with the number that a condition refused.
func inCalls(c testkit.Counts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		op := c[name]
		if op.Calls == 0 { // held before it was sent
			continue
		}
		part := fmt.Sprintf("%d %s", op.Calls, name)
		if n := op.Errors["ConditionalCheckFailedException"]; n > 0 {
			part += fmt.Sprintf(" (%d refused)", n)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
