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

// TestCosts counts the calls and the units of each kind of call of a limiter, and compares them
// with the table in the docs.
func TestCosts(t *testing.T) {
	t.Parallel()
	full, lean := costKinds(t)
	docs, err := os.ReadFile("../docs/dynamodb.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.Concat(
		flatCosts(), unknownCosts(), deniedCosts(), settleCosts(), cascadeCosts(), familyCosts(),
		togetherCosts(), readingCosts(), shardCosts(),
	)
	var b strings.Builder
	for i := range rows {
		r := &rows[i]
		t.Run(r.what, func(t *testing.T) {
			t.Parallel()
			r.on(t, full, r.full)
			r.on(t, lean, r.lean)
		})
		b.WriteString(r.String())
		if !strings.Contains(string(docs), r.String()) {
			t.Errorf("docs/dynamodb.md does not have the line\n%s", r)
		}
	}
	t.Logf("\n%s%s", costHeader, &b)
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
func (r *costRow) on(t *testing.T, table *Table, want costUnits) {
	t.Helper()
	before, after, units := r.measure(t, table)
	if before != r.before || after != r.after || units != want {
		t.Errorf("lean %t: got %q, then %q, %+v;\nwant %q, then %q, %+v",
			table.Lean, before, after, units, r.before, r.after, want)
	}
}

// measure runs the row in a world of its own.
func (r *costRow) measure(t *testing.T, table *Table) (before, after string, units costUnits) {
	t.Helper()
	var s *costWorld
	if r.tune != nil {
		s = newCostWorld(t, table, r.tune)
	} else {
		s = newCostWorld(t, table)
	}
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

// units returns the units that calls consumed. If the items of a transaction cost the same,
// DynamoDB Local 3.1 reports only one of them; in these rows they all cost the same.
func (p *costProcess) units(c testkit.Counts) costUnits {
	all := c.Total()
	units := costUnits{all.Capacity.ReadMilli, all.Capacity.WriteMilli + 1000*refusedWrites(c)}
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	for _, r := range p.wire.seen {
		if r.operation == "TransactWriteItems" {
			units.write += (r.items - 1) * c[r.operation].Capacity.WriteMilli
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
