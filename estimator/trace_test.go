package estimator_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

// trace returns the generated tokens of the recorded calls.
func trace(t testing.TB) []int64 {
	t.Helper()
	text, err := os.ReadFile("../examples/azure-llm-2023-code.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const column = 2
	if lines[0][column] != "GeneratedTokens" {
		t.Fatalf("column %d is %q", column, lines[0][column])
	}
	var out []int64
	for _, line := range lines[1:] {
		n, err := strconv.ParseInt(line[column], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// TestTrace compares with constant estimates on recorded traffic. The bounds are wide enough for a
// better method, and too narrow for one that is off by a rank or forgets nothing.
func TestTrace(t *testing.T) {
	t.Parallel()
	calls := trace(t)
	show := func(name string, s estimator.Score) {
		t.Logf("%-13s covers %6.2f %%, not used %4d a call, overruns %4d calls with %6d tokens",
			name, float64(covered(s))/10_000, s.Over/s.Calls, s.Calls-s.Covered, s.Under)
	}
	for _, tokens := range []int64{64, 256, 1_024, 4_096} {
		show("fixed "+strconv.FormatInt(tokens, 10), fixed(tokens, calls))
	}
	tests := []struct {
		share    int64
		from, to int64 // coverage, in parts per million
		over     int64 // units reserved and not used, in per cent of those of the best constant estimate
	}{
		{900_000, 897_000, 910_000, 115},
		{950_000, 947_000, 960_000, 120},
		{990_000, 987_000, 994_000, 125},
	}
	for _, test := range tests {
		s := play(t, &estimator.Options{Share: test.share}, calls)
		best := fixed(quantile(calls, test.share), calls)
		show("quantile "+strconv.FormatInt(test.share/10_000, 10), s)
		show("  hindsight "+strconv.FormatInt(quantile(calls, test.share), 10), best)
		t.Logf("  loss %d, in hindsight %d", s.Loss(test.share), best.Loss(test.share))
		if c := covered(s); c < test.from || c > test.to {
			t.Errorf("share %d covers %d, want %d to %d", test.share, c, test.from, test.to)
		}
		if s.Over > best.Over*test.over/100 {
			t.Errorf("share %d reserves %d that are not used, the best constant %d", test.share, s.Over, best.Over)
		}
		if loss, least := s.Loss(test.share), best.Loss(test.share); loss > least*120/100 {
			t.Errorf("share %d loses %d, the best constant %d", test.share, loss, least)
		}
	}
}
