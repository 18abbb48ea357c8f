package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/weir-limiter/weir/internal/joined"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/manifest"
)

// Candidate is one of two limits files that are compared.
type Candidate struct {
	// File is the file's name in messages.
	File   string
	Limits *manifest.Manifest
	// Watchers are told of every event of the run against it. Default: none.
	Watchers []Watcher
}

// Comparison says how a second limits file treated the same calls, compared with the first.
type Comparison struct {
	Calls  CallsCompared    `json:"calls"`
	Change Difference       `json:"change"`
	Limits []*LimitCompared `json:"limits"`
	// Second is the report of the run against the second file.
	Second *Report `json:"second"`
}

// CallsCompared divides the calls into those that both files admitted in the end, only one of them,
// or neither.
type CallsCompared struct {
	Both       CallCount `json:"both"`
	OnlyFirst  CallCount `json:"only_first"`
	OnlySecond CallCount `json:"only_second"`
	Neither    CallCount `json:"neither"`
}

// CallCount is a number of calls, their share of all calls, and their tokens.
type CallCount struct {
	Calls   int64       `json:"calls"`
	Percent json.Number `json:"percent"`
	Tokens  *big.Int    `json:"tokens"`
}

// Compare runs a workload against one limits file and then against another: the same calls by the
// same callers with the same costs. It returns the report of the first run, and the comparison. It
// checks that the workload fits both files before the first run.
//
// The watchers are told of both runs, one after the other, and no log is written. A cost may be for
// a limit that only one of the files has. An error about a file begins with its name; otherwise
// errors are those of [Run].
func Compare(
	ctx context.Context, w *Workload, of [2]Candidate, o *Options,
) (*Report, *Comparison, error) {
	if o == nil {
		o = &Options{}
	}
	spare := *w // each file may lack a limit that the other has
	spare.spare = true
	if err := spare.fits(ctx, of); err != nil {
		return nil, nil, err
	}
	var reports [2]*Report
	var admitted [2]admissions
	for i := range of {
		admitted[i] = newAdmissions(len(w.calls))
		r, err := Run(ctx, of[i].Limits.Definitions, &spare, &Options{
			Estimate: o.Estimate, Retry: o.Retry,
			Watchers: slices.Concat([]Watcher{admitted[i]}, o.Watchers, of[i].Watchers),
		})
		if err != nil {
			return nil, nil, of[i].locate(err)
		}
		r.LimitsFile = of[i].File
		reports[i] = r
	}
	return reports[0], &Comparison{
		Calls: compareCalls(w.calls, admitted), Change: newDifference(reports[0], reports[1]),
		Limits: compareLimits(reports[0].Limits, reports[1].Limits), Second: reports[1],
	}, nil
}

// fits checks that a workload fits both files, and that each cost is charged by at least one.
func (w *Workload) fits(ctx context.Context, of [2]Candidate) error {
	var errs []error
	charged := map[string]bool{}
	for i := range of {
		p, err := bindTo(ctx, of[i].Limits.Definitions, w)
		if err != nil {
			errs = append(errs, of[i].locate(err))
			continue
		}
		for name := range w.costs {
			charged[name] = charged[name] || p.charged(name)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, name := range slices.Sorted(maps.Keys(w.costs)) {
		if !charged[name] {
			errs = append(errs, w.uncharged(name))
		}
	}
	return errors.Join(errs...)
}

// locate adds the file to an error: the position in it, or its name if the workload does not fit
// it.
func (c *Candidate) locate(err error) error {
	var all []error
	for _, e := range joined.Errors(c.Limits.Locate(err)) {
		if _, unfit := errors.AsType[UnfitError](e); unfit {
			e = fmt.Errorf("%s: %w", c.File, e)
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

// Difference is the second figure less the first, for each of the totals.
type Difference struct {
	Admitted       int64    `json:"admitted"`
	Denied         int64    `json:"denied"`
	Errors         int64    `json:"errors"`
	TokensAdmitted *big.Int `json:"tokens_admitted"`
	TokensDenied   *big.Int `json:"tokens_denied"`
	// The changes of retry-afters are absent unless both files denied something.
	RetryAfterP50MS *int64 `json:"retry_after_p50_ms,omitempty"`
	RetryAfterP95MS *int64 `json:"retry_after_p95_ms,omitempty"`
	// Retry is absent if denied calls did not come back.
	Retry *RetryDifference `json:"retry,omitempty"`
	// Estimates is absent if calls reserved what they used.
	Estimates *EstimateDifference `json:"estimates,omitempty"`
}

// RetryDifference is about calls that come back.
type RetryDifference struct {
	Attempts  int64 `json:"attempts"`
	GivenUp   int64 `json:"given_up"`
	WaitP50MS int64 `json:"wait_p50_ms"`
	WaitP95MS int64 `json:"wait_p95_ms"`
}

// EstimateDifference is about the estimates of the calls' output.
type EstimateDifference struct {
	Covered     int64    `json:"covered"`
	Overruns    int64    `json:"overruns"`
	TokensOver  *big.Int `json:"tokens_over"`
	TokensUnder *big.Int `json:"tokens_under"`
}

func newDifference(a, b *Report) Difference {
	less := func(a, b *big.Int) *big.Int { return new(big.Int).Sub(b, a) }
	x, y := &a.Totals, &b.Totals
	c := Difference{
		Admitted: y.Admitted - x.Admitted, Denied: y.Denied - x.Denied, Errors: y.Errors - x.Errors,
		TokensAdmitted: less(x.TokensAdmitted, y.TokensAdmitted),
		TokensDenied:   less(x.TokensDenied, y.TokensDenied),
	}
	if x.RetryAfterP50MS != nil && y.RetryAfterP50MS != nil {
		c.RetryAfterP50MS = new(*y.RetryAfterP50MS - *x.RetryAfterP50MS)
		c.RetryAfterP95MS = new(*y.RetryAfterP95MS - *x.RetryAfterP95MS)
	}
	if x, y := a.Retry, b.Retry; x != nil && y != nil {
		c.Retry = &RetryDifference{
			y.Attempts - x.Attempts, y.GivenUp - x.GivenUp,
			y.WaitMS.P50 - x.WaitMS.P50, y.WaitMS.P95 - x.WaitMS.P95,
		}
	}
	if x, y := a.Estimates, b.Estimates; x != nil && y != nil {
		c.Estimates = &EstimateDifference{
			y.Covered - x.Covered, y.Overruns - x.Overruns,
			less(x.TokensOver, y.TokensOver), less(x.TokensUnder, y.TokensUnder),
		}
	}
	return c
}

// admissions is a watcher that remembers which calls were admitted, with one bit for each: ten
// million take 1.25 MB.
type admissions []uint64

func newAdmissions(calls int) admissions { return make(admissions, (calls+63)/64) }

// Reserved notes an attempt that was admitted. A call has at most one.
func (s admissions) Reserved(a *Attempt, v *Decision) error {
	if v.Admitted() {
		s[a.seq/64] |= 1 << (a.seq % 64)
	}
	return nil
}

// has reports whether a call was admitted.
func (s admissions) has(seq int) bool { return s[seq/64]>>(seq%64)&1 == 1 }

// compareCalls counts the calls that both, one or none of two runs admitted.
func compareCalls(calls []trace.Call, admitted [2]admissions) CallsCompared {
	var c CallsCompared
	all := []*CallCount{&c.Neither, &c.OnlySecond, &c.OnlyFirst, &c.Both}
	for _, count := range all {
		count.Tokens = new(big.Int)
	}
	var scratch big.Int
	for i := range calls {
		count := all[2*fromBool(admitted[0].has(i))+fromBool(admitted[1].has(i))]
		count.Calls++
		count.Tokens.Add(count.Tokens, scratch.SetInt64(calls[i].Tokens()))
	}
	for _, count := range all {
		count.Percent = percent(big.NewInt(count.Calls), big.NewInt(int64(len(calls))))
	}
	return c
}

// LimitCompared is a row of two reports: limits of the same entity, resource and name.
type LimitCompared struct {
	Entity   string `json:"entity,omitempty"`
	Group    Group  `json:"group,omitempty"`
	Resource string `json:"resource,omitempty"`
	Limit    string `json:"limit"`
	// First and Second are the rows. One of them is absent if only the other file has the limit.
	// Their kinds may differ.
	First  *LimitReport `json:"first,omitempty"`
	Second *LimitReport `json:"second,omitempty"`
}

// compareLimits puts the rows of two reports side by side: those of the first in their order, with
// the rows that only the second has at their place among its others.
func compareLimits(first, second []*LimitReport) []*LimitCompared {
	same := func(a, b *LimitReport) bool {
		return a.Group == b.Group && a.Entity == b.Entity && a.Resource == b.Resource && a.Limit == b.Limit
	}
	// If several rows have the same name, those of one kind belong together.
	partner := Match(first, second, func(a, b *LimitReport) bool {
		return same(a, b) && a.Kind == b.Kind && a.Shadow == b.Shadow
	}, same)
	out := []*LimitCompared{}
	add := func(l, first, second *LimitReport) {
		out = append(out, &LimitCompared{l.Entity, l.Group, l.Resource, l.Limit, first, second})
	}
	next := 0
	alone := func(until int) {
		for ; next < until; next++ {
			if !slices.Contains(partner, next) {
				add(second[next], nil, second[next])
			}
		}
	}
	for i, l := range first {
		if k := partner[i]; k >= 0 {
			alone(k)
			add(l, l, second[k])
		} else {
			add(l, l, nil)
		}
	}
	alone(len(second))
	return out
}

// Match returns for each row of the first list the index of its partner in the second; -1 for none.
// A row has one partner at most. Pairs that are the same by an earlier function come first.
func Match[T any](first, second []T, same ...func(a, b T) bool) []int {
	partner, taken := slices.Repeat([]int{-1}, len(first)), make([]bool, len(second))
	for _, same := range same {
		for i, a := range first {
			for k, b := range second {
				if partner[i] < 0 && !taken[k] && same(a, b) {
					partner[i], taken[k] = k, true
				}
			}
		}
	}
	return partner
}

// SameLimit reports whether two timelines are about limits of the same entity, resource and name.
func SameLimit(a, b *LimitTimeline) bool {
	return a.Group == b.Group && a.Entity == b.Entity && a.Resource == b.Resource && a.Limit == b.Limit
}
