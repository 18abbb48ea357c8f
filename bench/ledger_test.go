package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestLedgerContests takes leases on a server for a moment, on both sides.
func TestLedgerContests(t *testing.T) {
	t.Parallel()
	if len(ledgerAddresses()) == 0 {
		t.Skip(ledgerVariable + " names no TigerBeetle server")
	}
	for _, c := range ledgerContests() {
		t.Run(c.name, func(t *testing.T) {
			r, err := runLedger(testContext(t), &c, &settings{runs: 2, length: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			for i, label := range c.labels {
				for run := range r.runs {
					f := r.runs[run][i]
					if f.leases == 0 || f.sent.calls == 0 || f.half == 0 || f.most < f.half {
						t.Errorf("%s: got %+v, want leases", label, f)
					}
				}
			}
		})
	}
}

// TestLedgerContestsSayThatThereIsNoServer leaves the comparisons out, and says so.
func TestLedgerContestsSayThatThereIsNoServer(t *testing.T) {
	t.Setenv(ledgerVariable, "")
	var out bytes.Buffer
	if err := run(testContext(t), []string{"-run", "^tigerbeetle/"}, &out); err != nil {
		t.Fatal(err)
	}
	want := ledgerVariable + " names no TigerBeetle server"
	if got := strings.Count(out.String(), want); got != len(ledgerContests()) {
		t.Errorf("got %s, want %q for each of %d", &out, want, len(ledgerContests()))
	}
}

func TestSameLeases(t *testing.T) {
	t.Parallel()
	weirs := ledgerFigure{leases: 100, sent: ledgerSent{calls: 200, events: 1703}}
	for _, c := range []struct {
		raw  ledgerFigure
		same bool
	}{
		{ledgerFigure{leases: 50, sent: ledgerSent{100, 850}}, true},
		{ledgerFigure{leases: 100, sent: ledgerSent{200, 1800}}, false},
		{ledgerFigure{leases: 100, sent: ledgerSent{100, 1703}}, false},
		{ledgerFigure{}, false},
	} {
		if err := sameLeases(&weirs, &c.raw); (err == nil) != c.same {
			t.Errorf("%+v: got %v, want same %t", c.raw, err, c.same)
		}
	}
}

func TestLedgerReport(t *testing.T) {
	t.Parallel()
	c := ledgerContests()[1]
	r := &ledgerResult{contest: &c, setting: &settings{runs: 1, length: time.Second}, runs: [][]ledgerFigure{{
		{leases: 900, ns: 1e9, cpu: 9e7, sent: ledgerSent{1800, 15300}, half: 2_500_000, most: 9_000_000},
		{leases: 1000, ns: 1e9, cpu: 4e7, sent: ledgerSent{2000, 17000}, half: 2_000_000, most: 6_000_000},
	}}}
	var out bytes.Buffer
	if err := (&reporter{w: &out, markdown: true}).ledgerResult(r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| weir, reserve + complete | 900 | 900–900 | 2.50 | 9.00 | 100 | 2.00 | 17.00 |",
		"| leases/s | 0.90 | 0.90–0.90 | ≥ 0.8 | kept |", "| p99 | 1.50 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", &out, want)
		}
	}
}
