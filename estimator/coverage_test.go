package estimator_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

// play estimates and learns the calls of one key in turn, and returns the score.
func play(t *testing.T, o *estimator.Options, calls []int64) estimator.Score {
	t.Helper()
	e := open(t, o)
	k := estimator.Key{Entity: "acme", Model: "m"}
	for _, used := range calls {
		e.Learn(k, e.Estimate(k).Tokens, used)
	}
	return e.Report().All
}

func open(t testing.TB, o *estimator.Options) *estimator.Estimator {
	t.Helper()
	e, err := estimator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fixed returns the score of the same estimate for every call.
func fixed(tokens int64, calls []int64) estimator.Score {
	var s estimator.Score
	for _, used := range calls {
		s.Calls++
		s.Used += used
		s.Over += max(0, tokens-used)
		s.Under += max(0, used-tokens)
		if used <= tokens {
			s.Covered++
		}
	}
	return s
}

// quantile returns the smallest constant that covers the share.
func quantile(calls []int64, share int64) int64 {
	sorted := slices.Sorted(slices.Values(calls))
	return sorted[(int64(len(sorted))*share+999_999)/1_000_000-1]
}

func covered(s estimator.Score) int64 { return s.Covered * 1_000_000 / s.Calls }

// TestCoverageEqualsTheShare plays calls of known distributions. The coverage must be near the
// share on both sides. The tokens reserved and not used and the loss must not be far above those of
// the true quantile, so that an estimator that asks for a huge number fails.
func TestCoverageEqualsTheShare(t *testing.T) {
	t.Parallel()
	distributions := []struct {
		name string
		draw func(r *rand.Rand) int64
	}{
		{"constant", func(*rand.Rand) int64 { return 700 }},
		{"few values", func(r *rand.Rand) int64 { return int64(r.IntN(4)) }},
		{"uniform", func(r *rand.Rand) int64 { return r.Int64N(4_000) }},
		{"exponential", func(r *rand.Rand) int64 { return int64(r.ExpFloat64() * 300) }},
		{"heavy tail", func(r *rand.Rand) int64 {
			return int64(100 / math.Pow(1-r.Float64(), 1/1.5)) // Pareto
		}},
		{"bimodal", func(r *rand.Rand) int64 {
			if r.IntN(5) == 0 {
				return 3_000 + r.Int64N(2_000)
			}
			return 10 + r.Int64N(50)
		}},
	}
	for _, d := range distributions {
		for _, share := range []int64{500_000, 900_000, 950_000, 990_000} {
			t.Run(fmt.Sprintf("%s/%d", d.name, share), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(3) {
					r := rand.New(rand.NewPCG(seed, uint64(share)))
					calls := make([]int64, 20_000)
					for i := range calls {
						calls[i] = d.draw(r)
					}
					judge(t, share, calls)
				}
			})
		}
	}
}

// judge compares the score with those of two constants that are known only in hindsight: the true
// quantile, and the slightly higher quantile that a finite window may take for it, rounded up by a
// bin.
func judge(t *testing.T, share int64, calls []int64) {
	t.Helper()
	allowed := min(12_000, (1_000_000-share)/10+2_000)
	best, further := quantile(calls, share), quantile(calls, share+allowed)
	ideal, high := fixed(best, calls), fixed(further+further/16, calls)
	got := play(t, &estimator.Options{Share: share, First: best}, calls)
	if c := covered(got); c < share-allowed || c > covered(high) {
		t.Errorf("covers %d ppm, want %d to %d", c, share-allowed, covered(high))
	}
	if got.Over > high.Over {
		t.Errorf("reserves %d that are not used, want at most %d", got.Over, high.Over)
	}
	loss, least := got.Loss(share), ideal.Loss(share)
	bin := (1_000_000 - share) * got.Calls / 1_000_000 * best / 16
	if loss > least+least/10+bin {
		t.Errorf("loss %d, the true quantile's %d", loss, least)
	}
	t.Logf("covers %d of %d ppm, not used %d (true quantile %d), loss %d (%d)",
		covered(got), share, got.Over, ideal.Over, loss, least)
}

// TestCoverageUnderDrift plays traffic for which nothing is promised, and checks how much coverage
// is left.
func TestCoverageUnderDrift(t *testing.T) {
	t.Parallel()
	drifts := []struct {
		name  string
		scale func(i int) float64
		least int64 // least coverage, in parts per million
	}{
		{"still", func(int) float64 { return 1 }, 945_000},
		{"grows tenfold", func(i int) float64 { return 1 + float64(i)/800 }, 940_000},
		{"shrinks to a tenth", func(i int) float64 { return 1 / (1 + float64(i)/800) }, 945_000},
		{"fourfold every other thousand", func(i int) float64 { return 1 + float64(i/1_000%2*3) }, 930_000},
		{"saw", func(i int) float64 { return 1 + float64(i%1_000)/100 }, 920_000},
	}
	for _, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, 8))
			calls := make([]int64, 8_000)
			for i := range calls {
				calls[i] = int64(r.ExpFloat64() * 100 * d.scale(i))
			}
			s := play(t, nil, calls)
			constant := fixed(quantile(calls, 950_000), calls)
			t.Logf("covers %d ppm, loss %d; the best constant %d",
				covered(s), s.Loss(950_000), constant.Loss(950_000))
			if c := covered(s); c < d.least || c > 965_000 {
				t.Errorf("covers %d ppm, want %d to 965,000", c, d.least)
			}
			t.Attr("covered", strconv.FormatInt(covered(s), 10))
		})
	}
}
