package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// EstimateReport says how good the estimates of the calls' output were, over all calls that were
// admitted and have ended.
type EstimateReport struct {
	EstimateScore

	// Callers are the pairs of an entity and a model, the one with the worst coverage first; absent
	// where they are more than eight.
	Callers []CallerScore `json:"callers,omitempty"`
	// CallersTotal is how many such pairs there were.
	CallersTotal int `json:"callers_total"`
}

// CallerScore is the score of an entity's calls to a model.
type CallerScore struct {
	Entity string `json:"entity"`
	Model  string `json:"model"`
	EstimateScore
}

// EstimateScore compares what was estimated with what was used. Sums are in tokens.
type EstimateScore struct {
	Calls int64 `json:"calls"`
	// Covered are the calls that generated at most what was estimated, and Overruns the others.
	Covered         int64       `json:"covered"`
	CoveredPercent  json.Number `json:"covered_percent,omitempty"`
	Overruns        int64       `json:"overruns"`
	TokensEstimated *big.Int    `json:"tokens_estimated"`
	TokensUsed      *big.Int    `json:"tokens_used"`
	// TokensOver were reserved and not used, TokensUnder used and not reserved.
	TokensOver  *big.Int `json:"tokens_over"`
	TokensUnder *big.Int `json:"tokens_under"`
	// OverPercent is TokensOver as a share of TokensUsed.
	OverPercent json.Number `json:"over_percent,omitempty"`
}

// estimateCount counts for a score.
type estimateCount struct {
	calls, covered             int64
	estimated, used, over, low big.Int

	scratch big.Int
}

func (c *estimateCount) add(estimated, used int64) {
	sum := func(into *big.Int, n int64) { into.Add(into, c.scratch.SetInt64(n)) }
	c.calls++
	sum(&c.estimated, estimated)
	sum(&c.used, used)
	if used <= estimated {
		c.covered++
		sum(&c.over, estimated-used)
		return
	}
	sum(&c.low, used-estimated)
}

func (c *estimateCount) score() EstimateScore {
	return EstimateScore{
		Calls: c.calls, Covered: c.covered, Overruns: c.calls - c.covered,
		CoveredPercent:  percent(big.NewInt(c.covered), big.NewInt(c.calls)),
		TokensEstimated: &c.estimated, TokensUsed: &c.used, TokensOver: &c.over, TokensUnder: &c.low,
		OverPercent: percent(&c.over, &c.used),
	}
}

// report returns nil where the truth was known.
func (e *estimates) report() *EstimateReport {
	if e == nil {
		return nil
	}
	r := &EstimateReport{EstimateScore: e.all.score(), CallersTotal: len(e.by)}
	if len(e.by) > shownEntities {
		return r
	}
	for _, p := range slices.Collect(maps.Keys(e.by)) {
		r.Callers = append(r.Callers, CallerScore{p.Entity, p.Resource, e.by[p].score()})
	}
	slices.SortFunc(r.Callers, func(a, b CallerScore) int {
		// a's share is less than b's where a.Covered/a.Calls < b.Covered/b.Calls.
		return cmp.Or(
			new(big.Int).Mul(big.NewInt(a.Covered), big.NewInt(b.Calls)).Cmp(
				new(big.Int).Mul(big.NewInt(b.Covered), big.NewInt(a.Calls))),
			strings.Compare(a.Entity, b.Entity), strings.Compare(a.Model, b.Model))
	})
	return r
}
