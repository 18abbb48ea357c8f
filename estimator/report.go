package estimator

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Score adds up how good estimates were. Sums of tokens stay at the largest int64 when they would
// pass it.
type Score struct {
	// Calls were learned, and Covered of them stayed within what was estimated.
	Calls, Covered int64
	// Used is what the calls used, in tokens.
	Used int64
	// Over is what was estimated and not used, Under what was used and not estimated, in tokens.
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

// Loss is the pinball loss in tokens, rounded up: the share of what was under, plus the rest of
// what was over. Share is in parts per million. Of all constant estimates, the
// share's quantile has the least, so the estimator with the smaller loss is the better one.
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

// add returns the sum of two numbers that are not negative, or the largest int64.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// maxRows bounds each table of a report.
const maxRows = 100

// Row is what a report says of one key, or of one model: then the entity is empty.
type Row struct {
	Key   Key
	Score Score
	// Estimate is what the row's own calls would say now; zero where they are too few.
	Estimate Estimate
}

// Report is how good the estimates were since the start. Its sums cover every call, its rows those
// keys and models that are known now.
type Report struct {
	// Share is what was asked for, in parts per million.
	Share int64
	// All is the score of every call.
	All Score
	// Models and Keys are sorted by loss, the largest first, and at most a hundred each.
	Models, Keys []Row
	// KnownModels and KnownKeys are how many are known, ForgottenModels and ForgottenKeys how often
	// one had to go for another.
	KnownModels, KnownKeys         int64
	ForgottenModels, ForgottenKeys int64
	// Refused is how many calls were not learned because of a negative use.
	Refused int64
}

// Report returns how good the estimates were. It reads everything under the lock, so it is for
// people and scrapes, not for each call.
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

// worst returns the rows with the largest loss. Rows alike are in the order of their names, so that
// a report of the same calls is the same.
func worst(rows []Row, share int64) []Row {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(b.Score.Loss(share), a.Score.Loss(share)),
			cmp.Compare(a.Key.Entity, b.Key.Entity),
			cmp.Compare(a.Key.Model, b.Key.Model),
		)
	})
	if len(rows) > maxRows {
		rows = slices.Clone(rows[:maxRows]) // the rest need not stay in memory
	}
	return rows
}
