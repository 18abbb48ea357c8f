package replay

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/manifest"
)

// candidate returns a limits file with these lines below the resource llm.
func candidate(t *testing.T, file, limits string) Candidate {
	t.Helper()
	m, err := manifest.Parse(file, []byte("version: 1\nresources:\n  llm:\n    limits:\n"+limits))
	if err != nil {
		t.Fatal(err)
	}
	return Candidate{File: file, Limits: m}
}

const (
	// firstTwo admits any two calls.
	firstTwo = "      rpm: {kind: window, capacity: 2, window: 3600}\n"
	// smallOnes admits calls until they have 40 tokens together, and none of more than 20.
	smallOnes = "      tpm: {kind: window, capacity: 40, window: 3600}\n" +
		"      size: {capacity: 20, refill_amount: 2000, refill_period: 1}\n"
)

// fiveCalls returns five calls, one after the other, of 30, 15, 20, 2000 and 3 tokens.
func fiveCalls(costs Costs) *Workload {
	return NewWorkload(traceOf(
		callOf(2, 1000, 25, 5), callOf(3, 2000, 10, 5), callOf(4, 3000, 10, 10),
		callOf(5, 4000, 1000, 1000), callOf(6, 5000, 1, 2),
	), &WorkloadOptions{Costs: costs})
}

func sizeCost() Costs { return Costs{"size": Cost{input: 1, output: 1}} }

// TestCompare checks a comparison in which A admits the calls of 30 and 15 tokens, and B those of
// 15, 20 and 3.
func TestCompare(t *testing.T) {
	t.Parallel()
	a, b := candidate(t, "a.yaml", firstTwo), candidate(t, "b.yaml", smallOnes)
	for _, tt := range []struct {
		name string
		of   [2]Candidate
		want string
	}{
		{"a and b", [2]Candidate{a, b}, `both 1/15 first 1/30 second 2/23 neither 1/2000 ` +
			`admitted +1 denied -3 errors +2 tokens -7 +7`},
		{"b and a", [2]Candidate{b, a}, `both 1/15 first 2/23 second 1/30 neither 1/2000 ` +
			`admitted -1 denied +3 errors -2 tokens +7 -7`},
		{"a and a", [2]Candidate{a, a}, `both 2/45 first 0/0 second 0/0 neither 3/2023 ` +
			`admitted +0 denied +0 errors +0 tokens +0 +0`},
		{"b and b", [2]Candidate{b, b}, `both 3/38 first 0/0 second 0/0 neither 2/2030 ` +
			`admitted +0 denied +0 errors +0 tokens +0 +0`},
	} {
		costs := sizeCost()
		if tt.name == "a and a" {
			costs = nil
		}
		first, c, err := Compare(t.Context(), fiveCalls(costs), tt.of, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := comparedText(c); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if first.LimitsFile != tt.of[0].File || c.Second.LimitsFile != tt.of[1].File {
			t.Errorf("%s: got reports about %s and %s", tt.name, first.LimitsFile, c.Second.LimitsFile)
		}
	}
}

// comparedText returns a comparison in a line.
func comparedText(c *Comparison) string {
	var b strings.Builder
	for _, n := range []struct {
		name string
		CallCount
	}{
		{"both", c.Calls.Both}, {"first", c.Calls.OnlyFirst}, {"second", c.Calls.OnlySecond},
		{"neither", c.Calls.Neither},
	} {
		b.WriteString(n.name + " " + big.NewInt(n.Calls).String() + "/" + n.Tokens.String() + " ")
	}
	signed := func(n int64) string {
		if n < 0 {
			return big.NewInt(n).String()
		}
		return "+" + big.NewInt(n).String()
	}
	b.WriteString("admitted " + signed(c.Change.Admitted) + " denied " + signed(c.Change.Denied) +
		" errors " + signed(c.Change.Errors) + " tokens " + signed(c.Change.TokensAdmitted.Int64()) +
		" " + signed(c.Change.TokensDenied.Int64()))
	return b.String()
}

// TestCompareIsTwoRuns checks that each side equals the report of a replay against that file alone.
func TestCompareIsTwoRuns(t *testing.T) {
	t.Parallel()
	of := [2]Candidate{candidate(t, "a.yaml", firstTwo), candidate(t, "b.yaml", smallOnes)}
	o := &Options{Retry: &RetryOptions{}}
	if err := o.Estimate.Set("fixed:4"); err != nil {
		t.Fatal(err)
	}
	first, c, err := Compare(t.Context(), fiveCalls(sizeCost()), of, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range []*Report{first, c.Second} {
		costs := sizeCost()
		if i == 0 {
			costs = nil // the first file has no limit for it
		}
		want, err := Run(t.Context(), of[i].Limits.Definitions, fiveCalls(costs),
			&Options{Estimate: o.Estimate, Retry: o.Retry})
		if err != nil {
			t.Fatal(err)
		}
		want.LimitsFile = of[i].File
		got.Speed, want.Speed = Speed{}, Speed{}
		a, errA := json.Marshal(got)
		b, errB := json.Marshal(want)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("side %d: got\n%s\nwant\n%s", i, a, b)
		}
	}
	r, e := c.Change.Retry, c.Change.Estimates
	if r == nil || r.Attempts != c.Second.Retry.Attempts-first.Retry.Attempts ||
		r.GivenUp != c.Second.Retry.GivenUp-first.Retry.GivenUp {
		t.Errorf("got a change of %+v between %+v and %+v", r, first.Retry, c.Second.Retry)
	}
	if e == nil || e.Covered != c.Second.Estimates.Covered-first.Estimates.Covered ||
		e.Overruns != c.Second.Estimates.Overruns-first.Estimates.Overruns {
		t.Errorf("got a change of %+v between %+v and %+v", e, first.Estimates, c.Second.Estimates)
	}
}

// beginCounter notes that a replay has begun.
type beginCounter struct{ events int }

func (n *beginCounter) Reserved(*Attempt, *Decision) error { n.events++; return nil }

func (n *beginCounter) Completed(*Attempt) error { n.events++; return nil }

// TestCompareMistakes checks that a workload that does not fit either file is an error before
// anything is replayed.
func TestCompareMistakes(t *testing.T) {
	t.Parallel()
	fine := candidate(t, "a.yaml", firstTwo)
	for _, tt := range []struct {
		name   string
		second string // the limits of b.yaml
		costs  Costs
		want   string // empty for no error
	}{
		{"a cost that only the second has", smallOnes, sizeCost(), ""},
		{
			"a cost that is missing", smallOnes, nil,
			"b.yaml: the cost of a call on the limit size of tenant-1 is not known: give it with --cost size=EXPR",
		},
		{
			"a cost that neither has", firstTwo, sizeCost(),
			"--cost size: no entity in the replay has such a limit on llm",
		},
		{
			"nothing limits", "", nil,
			"b.yaml: no limits apply to tenant-1 on the resource llm; --resource names another",
		},
	} {
		second := candidate(t, "b.yaml", firstTwo)
		if tt.second == "" {
			m, err := manifest.Parse("b.yaml", []byte("version: 1\nresources: {other: {limits: {rpm: {capacity: 1}}}}\n"))
			if err != nil {
				t.Fatal(err)
			}
			second.Limits = m
		} else {
			second = candidate(t, "b.yaml", tt.second)
		}
		seen := &beginCounter{}
		_, _, err := Compare(t.Context(), fiveCalls(tt.costs), [2]Candidate{fine, second},
			&Options{Watchers: []Watcher{seen}})
		if tt.want == "" {
			if err != nil || seen.events == 0 {
				t.Errorf("%s: got %v after %d events, want no error", tt.name, err, seen.events)
			}
			continue
		}
		if _, unfit := errors.AsType[UnfitError](err); !unfit || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
		if seen.events != 0 {
			t.Errorf("%s: %d events before the error", tt.name, seen.events)
		}
	}
}

// TestAdmissions checks that each call has a bit of its own, and that ten million take 1.25 MB.
func TestAdmissions(t *testing.T) {
	t.Parallel()
	const calls = 200
	s := newAdmissions(calls)
	in := func(seq int) bool { return seq%3 == 0 || seq == 64 || seq == 127 }
	for seq := range calls {
		v := &Decision{}
		if !in(seq) {
			v.Err = newFault()
		}
		if err := s.Reserved(&Attempt{seq: seq}, v); err != nil {
			t.Fatal(err)
		}
	}
	for seq := range calls {
		if s.has(seq) != in(seq) {
			t.Errorf("call %d: got %v, want %v", seq, s.has(seq), in(seq))
		}
	}
	if got := 8 * len(newAdmissions(trace.MaxCalls)); got != 1_250_000 {
		t.Errorf("got %d bytes, want 1,250,000", got)
	}
}
