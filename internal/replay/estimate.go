package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-limiter/weir/estimator"
	"github.com/weir-limiter/weir/internal/text"
)

// Estimate says how many tokens a call is taken to generate when it reserves. Its zero value is the
// truth: what the call did generate. It is the value of a flag.
type Estimate struct {
	fixed int64 // tokens; meant where set is
	share int64 // of the calls, in parts per million; 0 where they do not learn
	set   bool  // fixed
}

// maxLearned bounds of how many pairs of an entity and a model estimates are learned; each takes
// some kilobytes.
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
		n, reason := parseTokens(value)
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

// parseShare reads a share like 0.95 as parts per million, more than none and less than all.
func parseShare(s string) (ppm int64, ok bool) {
	whole, decimals, _ := strings.Cut(s, ".")
	if strings.Trim(whole, "0") != "" || !isNumber(s) || len(decimals) > 6 {
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

// estimates says what calls are taken to generate, learns from those that end, and counts how good
// that was. It is a watcher. Nil knows the truth.
type estimates struct {
	how     Estimate
	learned *estimator.Estimator // nil unless it learns
	all     estimateCount
	by      map[*payer]*estimateCount
}

// newEstimates learns, where it does, from so many pairs of an entity and a model.
func newEstimates(how Estimate, pairs int) (*estimates, error) {
	if how.truth() {
		return nil, nil
	}
	e := &estimates{how: how, by: map[*payer]*estimateCount{}}
	if how.share == 0 {
		return e, nil
	}
	var err error
	e.learned, err = estimator.New(&estimator.Options{Share: how.share, Keys: min(pairs, maxLearned)})
	return e, err
}

// output is how many tokens a call is taken to generate.
func (e *estimates) output(by *payer, c *Call) int64 {
	switch {
	case e == nil:
		return c.Output
	case e.learned == nil:
		return e.how.fixed
	}
	return e.learned.Estimate(estimator.Key{Entity: by.Entity, Model: by.Resource}).Tokens
}

// Reserved has nothing to count: how good an estimate was is known when the call ends.
func (e *estimates) Reserved(*Attempt, *Verdict) error { return nil }

// Completed learns from a call that has ended.
func (e *estimates) Completed(a *Attempt) error {
	if e.learned != nil {
		key := estimator.Key{Entity: a.Entity, Model: a.Resource}
		e.learned.Learn(key, a.Estimate, a.Call.Output)
	}
	one := e.by[a.payer]
	if one == nil {
		one = &estimateCount{}
		e.by[a.payer] = one
	}
	e.all.add(a.Estimate, a.Call.Output)
	one.add(a.Estimate, a.Call.Output)
	return nil
}
