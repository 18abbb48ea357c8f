package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

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

// CompareOptions say how calls behave, against both limits files alike.
type CompareOptions struct {
	// Estimate says how many tokens a call is taken to generate when it reserves. Default: what it
	// did generate.
	Estimate Estimate
	// Retry makes denied calls come back. Default: they do not.
	Retry *RetryOptions
	// Watchers are told of every event of both replays, one after the other. Default: none.
	Watchers []Watcher
}

// Comparison says how replaying the same calls against a second limits file came out, beside the
// first.
type Comparison struct {
	Calls  CallsCompared    `json:"calls"`
	Change Change           `json:"change"`
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
// A cost may be on a limit that only one of the files has. An error about a file begins with its
// name; otherwise errors are those of [Run].
func Compare(
	ctx context.Context, w *Workload, of [2]Candidate, o *CompareOptions,
) (*Report, *Comparison, error) {
	if o == nil {
		o = &CompareOptions{}
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
		Calls: compareCalls(w.calls, admitted), Change: newChange(reports[0], reports[1]),
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
	p, err := newPlan(ctx, limiter, w)
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
	for _, e := range flatten(c.Limits.Locate(err)) {
		if _, unfit := errors.AsType[UnfitError](e); unfit {
			e = fmt.Errorf("%s: %w", c.File, e)
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

// flatten returns the errors that are joined in one.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}
