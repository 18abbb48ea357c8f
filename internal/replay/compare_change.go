package replay

import "math/big"

// Change is the second figure less the first, for each of the totals.
type Change struct {
	Admitted       int64    `json:"admitted"`
	Denied         int64    `json:"denied"`
	Errors         int64    `json:"errors"`
	TokensAdmitted *big.Int `json:"tokens_admitted"`
	TokensDenied   *big.Int `json:"tokens_denied"`
	// The changes of retry-afters are absent unless both files denied something.
	RetryAfterP50MS *int64 `json:"retry_after_p50_ms,omitempty"`
	RetryAfterP95MS *int64 `json:"retry_after_p95_ms,omitempty"`
	// Retry is absent where denied calls did not come back.
	Retry *RetryChange `json:"retry,omitempty"`
	// Estimates is absent where calls reserved what they used.
	Estimates *EstimateChange `json:"estimates,omitempty"`
}

// RetryChange is about calls that come back.
type RetryChange struct {
	Attempts  int64 `json:"attempts"`
	GivenUp   int64 `json:"given_up"`
	WaitP50MS int64 `json:"wait_p50_ms"`
	WaitP95MS int64 `json:"wait_p95_ms"`
}

// EstimateChange is about the estimates of the calls' output.
type EstimateChange struct {
	Covered     int64    `json:"covered"`
	Overruns    int64    `json:"overruns"`
	TokensOver  *big.Int `json:"tokens_over"`
	TokensUnder *big.Int `json:"tokens_under"`
}

func newChange(a, b *Report) Change {
	less := func(a, b *big.Int) *big.Int { return new(big.Int).Sub(b, a) }
	c := Change{
		Admitted: b.Totals.Admitted - a.Totals.Admitted,
		Denied:   b.Totals.Denied - a.Totals.Denied, Errors: b.Totals.Errors - a.Totals.Errors,
		TokensAdmitted: less(a.Totals.TokensAdmitted, b.Totals.TokensAdmitted),
		TokensDenied:   less(a.Totals.TokensDenied, b.Totals.TokensDenied),
	}
	if a.Totals.RetryAfterP50MS != nil && b.Totals.RetryAfterP50MS != nil {
		c.RetryAfterP50MS = new(*b.Totals.RetryAfterP50MS - *a.Totals.RetryAfterP50MS)
		c.RetryAfterP95MS = new(*b.Totals.RetryAfterP95MS - *a.Totals.RetryAfterP95MS)
	}
	if a.Retry != nil && b.Retry != nil {
		c.Retry = &RetryChange{
			Attempts: b.Retry.Attempts - a.Retry.Attempts, GivenUp: b.Retry.GivenUp - a.Retry.GivenUp,
			WaitP50MS: b.Retry.WaitMS.P50 - a.Retry.WaitMS.P50,
			WaitP95MS: b.Retry.WaitMS.P95 - a.Retry.WaitMS.P95,
		}
	}
	if x, y := a.Estimates, b.Estimates; x != nil && y != nil {
		c.Estimates = &EstimateChange{
			Covered: y.Covered - x.Covered, Overruns: y.Overruns - x.Overruns,
			TokensOver:  less(x.TokensOver, y.TokensOver),
			TokensUnder: less(x.TokensUnder, y.TokensUnder),
		}
	}
	return c
}
