package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir/estimator"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
)

// Estimate determines the number of output tokens that calls reserve. Its zero value is the truth:
// the number that a call generated. It is the value of a flag.
type Estimate struct {
	fixed int64 // tokens, if set is true
	share int64 // a quantile, in parts per million; 0 if estimates are not learned
	set   bool
}

// maxLearned bounds the pairs of an entity and a model with learned estimates. Each takes some
// kilobytes.
const maxLearned = 100_000

// maxFixed bounds a fixed estimate, in tokens.
const maxFixed = 1_000_000_000

// Set reads the flag's text: truth, fixed:N or quantile:0.95.
func (e *Estimate) Set(s string) error {
	kind, value, _ := strings.Cut(s, ":")
	switch {
	case s == "truth":
		*e = Estimate{}
		return nil
	case kind == "fixed":
		n, reason := trace.ParseTokens(value)
		if reason == "" && n > maxFixed {
			reason = "must be at most " + text.FormatInt(maxFixed)
		}
		if reason != "" {
			return fmt.Errorf("fixed:N: N %s", reason)
		}
		*e = Estimate{fixed: n, set: true}
		return nil
	case kind == "quantile":
		share, ok := parseShare(value)
		if !ok {
			return errors.New("quantile:Q: Q must be between 0 and 1, like 0.95, with at most six decimals")
		}
		if _, err := estimator.New(&estimator.Options{Share: share}); err != nil {
			return fmt.Errorf("quantile:%s: %w", value, err)
		}
		*e = Estimate{share: share}
		return nil
	}
	return errors.New("must be truth, fixed:N or quantile:Q, like fixed:1024 or quantile:0.95")
}

// parseShare reads a share like 0.95 as parts per million. It must be between 0 and 1.
func parseShare(s string) (ppm int64, ok bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	if strings.Trim(whole, "0") != "" || !trace.IsNumber(s) || len(decimals) > 6 {
		return 0, false
	}
	ppm, err := strconv.ParseInt((decimals + "000000")[:6], 10, 64)
	return ppm, err == nil && ppm > 0
}

// String returns the flag's text.
func (e *Estimate) String() string {
	switch {
	case e.share > 0:
		return "quantile:0." + strings.TrimRight(fmt.Sprintf("%06d", e.share), "0")
	case e.set:
		return "fixed:" + strconv.FormatInt(e.fixed, 10)
	}
	return "truth"
}

// Type names the values in the help.
func (e *Estimate) Type() string { return "HOW" }

// truth reports whether calls reserve what they use.
func (e *Estimate) truth() bool { return !e.set && e.share == 0 }

// estimates is a watcher that estimates the output of calls, learns from those that have ended, and
// scores its estimates. Nil returns the truth.
type estimates struct {
	how     Estimate
	learned *estimator.Estimator // nil unless it learns
	all     *EstimateScore
	by      map[*pricedCaller]*EstimateScore
}

// newEstimates returns estimates for up to pairs of an entity and a model.
func newEstimates(how Estimate, pairs int) (*estimates, error) {
	if how.truth() {
		return nil, nil
	}
	e := &estimates{how: how, all: newEstimateScore(), by: map[*pricedCaller]*EstimateScore{}}
	if how.share == 0 {
		return e, nil
	}
	var err error
	e.learned, err = estimator.New(&estimator.Options{Share: how.share, Keys: min(pairs, maxLearned)})
	return e, err
}

// output returns the number of output tokens that a call reserves.
func (e *estimates) output(by *pricedCaller, c *trace.Call) int64 {
	switch {
	case e == nil:
		return c.Output
	case e.learned == nil:
		return e.how.fixed
	}
	return e.learned.Estimate(estimator.Key{Entity: by.Entity, Model: by.Resource}).Tokens
}

// Reserved does nothing: the quality of an estimate is known when the call ends.
func (e *estimates) Reserved(*Attempt, *Decision) error { return nil }

// Completed learns from a call that has ended.
func (e *estimates) Completed(a *Attempt) error {
	if e.learned != nil {
		key := estimator.Key{Entity: a.Entity, Model: a.Resource}
		e.learned.Learn(key, a.Estimate, a.Call.Output)
	}
	one := e.by[a.payer]
	if one == nil {
		one = newEstimateScore()
		e.by[a.payer] = one
	}
	e.all.add(a.Estimate, a.Call.Output)
	one.add(a.Estimate, a.Call.Output)
	return nil
}

// EstimateReport scores the estimates of all calls that were admitted and have ended.
type EstimateReport struct {
	EstimateScore

	// Callers are the pairs of an entity and a model, the worst coverage first; absent if there are
	// more than eight.
	Callers []CallerScore `json:"callers,omitempty"`
	// CallersTotal is the number of such pairs.
	CallersTotal int `json:"callers_total"`
}

// CallerScore is the score of an entity's calls to a model.
type CallerScore struct {
	Entity string `json:"entity"`
	Model  string `json:"model"`
	EstimateScore
}

// EstimateScore compares estimates with what was used, in tokens.
type EstimateScore struct {
	Calls int64 `json:"calls"`
	// Covered counts the calls that generated at most their estimate, and Overruns the others.
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

func newEstimateScore() *EstimateScore {
	return &EstimateScore{
		TokensEstimated: new(big.Int), TokensUsed: new(big.Int),
		TokensOver: new(big.Int), TokensUnder: new(big.Int),
	}
}

func (s *EstimateScore) add(estimated, used int64) {
	sum := func(into *big.Int, n int64) { into.Add(into, big.NewInt(n)) }
	s.Calls++
	sum(s.TokensEstimated, estimated)
	sum(s.TokensUsed, used)
	if used <= estimated {
		s.Covered++
		sum(s.TokensOver, estimated-used)
	} else {
		s.Overruns++
		sum(s.TokensUnder, used-estimated)
	}
}

// done returns the score with its percentages.
func (s *EstimateScore) done() EstimateScore {
	s.CoveredPercent = percent(big.NewInt(s.Covered), big.NewInt(s.Calls))
	s.OverPercent = percent(s.TokensOver, s.TokensUsed)
	return *s
}

// report returns nil if calls reserved the truth.
func (e *estimates) report() *EstimateReport {
	if e == nil {
		return nil
	}
	r := &EstimateReport{EstimateScore: e.all.done(), CallersTotal: len(e.by)}
	if len(e.by) > shownEntities {
		return r
	}
	for _, p := range slices.Collect(maps.Keys(e.by)) {
		r.Callers = append(r.Callers, CallerScore{p.Entity, p.Resource, e.by[p].done()})
	}
	slices.SortFunc(r.Callers, func(a, b CallerScore) int {
		// Compare a.Covered/a.Calls with b.Covered/b.Calls.
		return cmp.Or(
			new(big.Int).Mul(big.NewInt(a.Covered), big.NewInt(b.Calls)).Cmp(
				new(big.Int).Mul(big.NewInt(b.Covered), big.NewInt(a.Calls))),
			strings.Compare(a.Entity, b.Entity), strings.Compare(a.Model, b.Model))
	})
	return r
}
