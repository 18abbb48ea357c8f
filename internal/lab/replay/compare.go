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
	// File is what messages call it.
	File   string
	Limits *manifest.Manifest
	// Watchers are told of every event of the replay against it. Default: none.
	Watchers []Watcher
}

// Comparison says how replaying the same calls against a second limits file came out, beside the
// first.
type Comparison struct {
	Calls  CallsCompared    `json:"calls"`
	Change Difference       `json:"change"`
	Limits []*LimitCompared `json:"limits"`
	// Second is the whole report about the second file.
	Second *Report `json:"second"`
}

// CallsCompared puts each call where it belongs: admitted in the end by both files, by one of them,
// or by neither.
type CallsCompared struct {
	Both       CallCount `json:"both"`
	OnlyFirst  CallCount `json:"only_first"`
	OnlySecond CallCount `json:"only_second"`
	Neither    CallCount `json:"neither"`
}

// CallCount is how many calls there are, their share of all calls, and their tokens.
type CallCount struct {
	Calls   int64       `json:"calls"`
	Percent json.Number `json:"percent"`
	Tokens  *big.Int    `json:"tokens"`
}

// Compare replays a workload against one limits file and then against another: the same calls by
// the same callers with the same costs. It returns the report about the first, and what is
// different with the second. Before anything is replayed it makes sure that the workload goes
// together with both.
//
// The watchers are told of both replays, one after the other, and no log is written. A cost may be
// on a limit that only one of the files has. An error about a file begins with its name; otherwise
// errors are those of [Run].
func Compare(
	ctx context.Context, w *Workload, of [2]Candidate, o *Options,
) (*Report, *Comparison, error) {
	if o == nil {
		o = &Options{}
	}
	spare := *w // each file may lack what the other has
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

// fits makes sure that a workload goes together with both files, and that each cost is charged with
// one of them.
func (w *Workload) fits(ctx context.Context, of [2]Candidate) error {
	var errs []error
	charged := map[string]bool{}
	for i := range of {
		if err := w.charges(ctx, of[i], charged); err != nil {
			errs = append(errs, of[i].locate(err))
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

// charges notes which of the costs by name are charged with a file's limits.
func (w *Workload) charges(ctx context.Context, of Candidate, charged map[string]bool) (err error) {
	limiter, err := open(of.Limits.Definitions, &virtualClock{atMS: w.calls[0].AtMS})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limiter.Close()) }()
	p, err := bindWorkload(ctx, limiter, w)
	if err != nil {
		return err
	}
	for name := range w.costs {
		charged[name] = charged[name] || p.charged(name)
	}
	return nil
}

// locate says which file an error is about: the place in it where that is known, its name for what
// does not go together with it.
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
	// Retry is absent where denied calls did not come back.
	Retry *RetryDifference `json:"retry,omitempty"`
	// Estimates is absent where calls reserved what they used.
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
	c := Difference{
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
		c.Retry = &RetryDifference{
			Attempts: b.Retry.Attempts - a.Retry.Attempts, GivenUp: b.Retry.GivenUp - a.Retry.GivenUp,
			WaitP50MS: b.Retry.WaitMS.P50 - a.Retry.WaitMS.P50,
			WaitP95MS: b.Retry.WaitMS.P95 - a.Retry.WaitMS.P95,
		}
	}
	if x, y := a.Estimates, b.Estimates; x != nil && y != nil {
		c.Estimates = &EstimateDifference{
			Covered: y.Covered - x.Covered, Overruns: y.Overruns - x.Overruns,
			TokensOver:  less(x.TokensOver, y.TokensOver),
			TokensUnder: less(x.TokensUnder, y.TokensUnder),
		}
	}
	return c
}

// admissions remembers which calls were admitted: one bit for each, so that ten million take 1.25
// MB. It is a watcher.
type admissions []uint64

func newAdmissions(calls int) admissions { return make(admissions, (calls+63)/64) }

// Reserved notes an attempt that was admitted. A call has at most one.
func (s admissions) Reserved(a *Attempt, v *Decision) error {
	if v.Admitted() {
		s[a.seq/64] |= 1 << (a.seq % 64)
	}
	return nil
}

// Completed has nothing to note.
func (s admissions) Completed(*Attempt) error { return nil }

// has reports whether a call was admitted.
func (s admissions) has(seq int) bool { return s[seq/64]>>(seq%64)&1 == 1 }

// compareCalls counts the calls that both, one or none of two replays admitted.
func compareCalls(calls []trace.Call, admitted [2]admissions) CallsCompared {
	var c CallsCompared
	places := [2][2]*CallCount{{&c.Neither, &c.OnlySecond}, {&c.OnlyFirst, &c.Both}}
	for _, row := range places {
		for _, count := range row {
			count.Tokens = new(big.Int)
		}
	}
	var scratch big.Int
	for i := range calls {
		count := places[fromBool(admitted[0].has(i))][fromBool(admitted[1].has(i))]
		count.Calls++
		count.Tokens.Add(count.Tokens, scratch.SetInt64(calls[i].Tokens()))
	}
	for _, row := range places {
		for _, count := range row {
			count.Percent = percent(big.NewInt(count.Calls), big.NewInt(int64(len(calls))))
		}
	}
	return c
}

// LimitCompared is a row of two reports: limits of the same entity, resource and name.
type LimitCompared struct {
	Entity   string `json:"entity,omitempty"`
	Group    Group  `json:"group,omitempty"`
	Resource string `json:"resource,omitempty"`
	Limit    string `json:"limit"`
	// First and Second are the rows. One of them is absent where only the other file has the limit.
	// Their kinds may differ.
	First  *LimitReport `json:"first,omitempty"`
	Second *LimitReport `json:"second,omitempty"`
}

// compareLimits puts the rows of two reports side by side: those of the first in their order, each
// followed by those of the second alone that stand behind it there.
func compareLimits(first, second []*LimitReport) []*LimitCompared {
	partner := matchLimits(first, second)
	taken := make([]bool, len(second))
	for _, k := range partner {
		if k >= 0 {
			taken[k] = true
		}
	}
	out := []*LimitCompared{}
	next := 0
	alone := func(until int) {
		for ; next < until; next++ {
			if !taken[next] {
				out = append(out, newLimitCompared(nil, second[next]))
			}
		}
	}
	for i, l := range first {
		if k := partner[i]; k >= 0 {
			alone(k)
			out = append(out, newLimitCompared(l, second[k]))
		} else {
			out = append(out, newLimitCompared(l, nil))
		}
	}
	alone(len(second))
	return out
}

// matchLimits finds for each row of the first report the row of the second; -1 for none. Where
// several have the same name, those of the same kind belong together.
func matchLimits(first, second []*LimitReport) []int {
	partner, free := make([]int, len(first)), map[rowKey][]int{}
	for i := range partner {
		partner[i] = -1
	}
	for _, exact := range []bool{true, false} {
		clear(free)
		taken := map[int]bool{}
		for _, k := range partner {
			taken[k] = true
		}
		for k, l := range second {
			if !taken[k] {
				key := l.key(exact)
				free[key] = append(free[key], k)
			}
		}
		for i, l := range first {
			key := l.key(exact)
			if rest := free[key]; partner[i] < 0 && len(rest) > 0 {
				partner[i], free[key] = rest[0], rest[1:]
			}
		}
	}
	return partner
}

// key is what a row has in common with another one: all, or all but how it limits.
func (l *LimitReport) key(exact bool) rowKey {
	key := rowKey{group: l.Group, entity: l.Entity, resource: l.Resource, limit: l.Limit}
	if exact {
		key.kind, key.shadow = l.Kind, l.Shadow
	}
	return key
}

func newLimitCompared(first, second *LimitReport) *LimitCompared {
	l := first
	if l == nil {
		l = second
	}
	return &LimitCompared{
		Entity: l.Entity, Group: l.Group, Resource: l.Resource, Limit: l.Limit,
		First: first, Second: second,
	}
}
