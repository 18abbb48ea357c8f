package estimator

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Score says how good estimates were. A sum that would overflow stays at the largest int64.
type Score struct {
	// Calls is the number of calls learned, and Covered is how many of them stayed within the
	// estimate.
	Calls, Covered int64
	// Used is the sum of the tokens that the calls used.
	Used int64
	// Over is the sum of what was estimated and not used, Under of what was used and not estimated,
	// in tokens.
	Over, Under int64
}

// add counts one call.
func (s *Score) add(estimated, used int64) {
	s.Calls = add(s.Calls, 1)
	s.Used = add(s.Used, used)
	if used <= estimated {
		s.Covered = add(s.Covered, 1)
		s.Over = add(s.Over, estimated-used)
		return
	}
	s.Under = add(s.Under, used-estimated)
}

// Loss returns the pinball loss in tokens, rounded up: Under times the share, plus Over times the
// rest of the share, which is in parts per million. Of all constant estimates the quantile of the
// share has the smallest loss, so of two estimators the one with the smaller loss is better.
func (s *Score) Loss(share int64) int64 {
	share = min(max(share, 0), million)
	underHigh, underLow := bits.Mul64(uint64(max(s.Under, 0)), uint64(share))
	overHigh, overLow := bits.Mul64(uint64(max(s.Over, 0)), uint64(million-share))
	low, carry := bits.Add64(underLow, overLow, 0)
	high, _ := bits.Add64(underHigh, overHigh, carry)
	low, carry = bits.Add64(low, million-1, 0)
	loss, _ := bits.Div64(high+carry, low, million) // at most the larger of the two sums
	return int64(loss)
}

// add returns the sum of two numbers that are not negative, or the largest int64 if it overflows.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// maxRows bounds the number of rows in each table of a report.
const maxRows = 100

// Row is the part of a report for one key, or for one model, whose rows have no entity.
type Row struct {
	Key   Key
	Score Score
	// Estimate is the estimate from the row's own calls now; zero if they are too few.
	Estimate Estimate
}

// Report says how good the estimates were from the start. Its sums cover every call; its rows are
// those of the keys and models that are remembered now.
type Report struct {
	// Share is [Options.Share].
	Share int64
	// All is the score of every call.
	All Score
	// Models and Keys are sorted by loss, the largest first, and at most a hundred each.
	Models, Keys []Row
	// KnownModels and KnownKeys are the numbers of models and keys remembered now. ForgottenModels
	// and ForgottenKeys are how often one was forgotten to make room for another.
	KnownModels, KnownKeys         int64
	ForgottenModels, ForgottenKeys int64
	// Refused is the number of calls not learned because of a negative use.
	Refused int64
}

// Report returns how good the estimates were. It reads everything under the mutex, so it is for
// operators and for collecting metrics, not for every call.
func (e *Estimator) Report() Report {
	out := Report{Share: e.share}
	e.mu.Lock()
	out.All, out.Refused = e.score, e.refused
	out.KnownModels, out.ForgottenModels = int64(len(e.models.known)), e.models.forgotten
	out.KnownKeys, out.ForgottenKeys = int64(len(e.keys.known)), e.keys.forgotten
	out.Models, out.Keys = e.models.rows(ByModel), e.keys.rows(ByKey)
	e.mu.Unlock()
	out.Models, out.Keys = worst(out.Models, e.share), worst(out.Keys, e.share)
	return out
}

func (t *table) rows(basis Basis) []Row {
	out := make([]Row, 0, len(t.known))
	for k, r := range t.known {
		row := Row{Key: k, Score: r.score}
		if tokens, ok := r.calls.estimate(t.share); ok {
			row.Estimate = Estimate{Tokens: tokens, Basis: basis, Seen: int64(r.calls.seen)}
		}
		out = append(out, row)
	}
	return out
}

// worst returns the rows with the largest loss. Rows with the same loss are sorted by name, so that
// the same calls give the same report.
func worst(rows []Row, share int64) []Row {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(b.Score.Loss(share), a.Score.Loss(share)),
			cmp.Compare(a.Key.Entity, b.Key.Entity),
			cmp.Compare(a.Key.Model, b.Key.Model),
		)
	})
	if len(rows) > maxRows {
		rows = slices.Clone(rows[:maxRows]) // frees the memory of the rest
	}
	return rows
}
