package broken

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// judgeRules returns variants that break lines 3.1, 3.2, 3.6 and 7.11.
func judgeRules() []pointVariant {
	// anyway takes although the request is denied.
	anyway := func(which func(fits bool) bool) model.Points {
		return model.Points{Taking: func(j *model.JudgedRequest, right []*model.Take) []*model.Take {
			for i, t := range j.Takes {
				if j.Denied && which(j.Fits[i]) {
					right = append(right, t)
				}
			}
			return right
		}}
	}
	return []pointVariant{
		{"shadow limits stop at their capacity", "3.6", status(func(_ *model.Judged, s *weir.LimitStatus) {
			if s.Shadow && s.Kind != weir.Bucket {
				s.Available = max(s.Available, 0)
			}
		})},
		{"only the largest cost on a limit is judged", "3.2", fits(func(j *model.Judged, _ bool) bool {
			return j.Available.Cmp(times(sumOf(largest(j.Parts)).Int64(), scale(&j.Limit))) >= 0
		})},
		{"only the largest cost on a limit is taken", "3.2", model.Points{
			Taking: func(_ *model.JudgedRequest, right []*model.Take) []*model.Take {
				right = slices.Clone(right)
				for i, t := range right {
					c := *t
					c.Parts = largest(t.Parts)
					right[i] = &c
				}
				return right
			}}},
		{"a denied request charges the limits that had room",
			"denied by one limit but charged by another", anyway(func(fits bool) bool { return fits })},
		{"a denied request charges the limit that denied", "3.1",
			anyway(func(fits bool) bool { return !fits })},
		{"a full shadow limit refuses what it cannot count", "3.6", strictShadow("3.6 shadow")},
		{"a full shadow limit holds up settlements", "7.11", strictShadow("7.11 shadow")},
		{"what cannot be counted is left out of any limit", "7.11",
			uncounted(anyLimit, "3.6 shadow", "7.11 shadow")},
	}
}

// strictShadow refuses what a shadow limit cannot count.
func strictShadow(line string) model.Points {
	return model.Points{Refuse: func(c model.Check, right error) error {
		if c.Line == line {
			return refused(weir.Invalid)
		}
		return right
	}}
}

// largest returns only the largest of a take's parts.
func largest(parts []driver.Part) []driver.Part {
	most := 0
	for i, p := range parts {
		if p.Units > parts[most].Units {
			most = i
		}
	}
	out := slices.Clone(parts)
	for i := range out {
		if i != most {
			out[i].Units = 0
		}
	}
	return out
}

// answerFronts returns variants that break lines 3.6 to 3.8 and 11.2.
func answerFronts() []wrappedVariant {
	return []wrappedVariant{
		{"judging stops at the first denial", "3.7", denying(func(_ *answer, d *weir.DeniedError) {
			first := slices.IndexFunc(d.Limits, func(s weir.LimitStatus) bool { return s.Exceeded && !s.Shadow })
			d.Limits = d.Limits[:first+1]
			d.RetryAfter = d.Limits[first].RetryAfter
		})},
		{"shadow limits deny", "3.6", answering(func(a *answer) {
			if a.err == nil && slices.ContainsFunc(a.lease.Limits, func(s weir.LimitStatus) bool { return s.Exceeded }) {
				_, _ = a.w.World.Cancel(context.Background(), a.lease.ID)
				a.fail(&weir.DeniedError{LeaseID: a.lease.ID, Limits: a.lease.Limits})
			}
		})},
		{"an admitted reservation reports what there was", "3.8", admitting(func(_ *wrongWorld, l *weir.Lease) {
			for i := range l.Limits {
				l.Limits[i].Available += l.Limits[i].Requested
			}
		})},
		{"an admitted reservation reports nothing asked", "3.8", admitting(func(_ *wrongWorld, l *weir.Lease) {
			for i := range l.Limits {
				l.Limits[i].Requested = 0
			}
		})},
		{"every attempt has the same ID", "11.2", func(w *wrongWorld) {
			var once sync.Once
			var id weir.LeaseID
			denying(func(_ *answer, d *weir.DeniedError) {
				once.Do(func() { id = d.LeaseID })
				d.LeaseID = id
			})(w)
		}},
		{"a freed slot is noticed late", "11.2", func(w *wrongWorld) {
			var denied time.Time
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				if !denied.IsZero() && w.Now().Before(denied.Add(20*time.Second)) {
					return nil, &weir.DeniedError{RetryAfter: time.Second,
						Limits: []weir.LimitStatus{{Exceeded: true, RetryAfter: time.Second}}}
				}
				l, err := w.World.Reserve(ctx, r)
				if _, ok := denialOf(err); ok {
					denied = w.Now()
				}
				return l, err
			}
		}},
	}
}

// denialFronts returns variants that break lines 4.1 and 4.4.
func denialFronts() []wrappedVariant {
	// retry changes the overall wait, given the waits of the limits that count.
	retry := func(overall func(waits []time.Duration) time.Duration) func(w *wrongWorld) {
		return denying(func(_ *answer, d *weir.DeniedError) {
			var waits []time.Duration
			for _, s := range d.Limits {
				if s.Exceeded && !s.Shadow {
					waits = append(waits, s.RetryAfter)
				}
			}
			d.RetryAfter = overall(waits)
		})
	}
	return []wrappedVariant{
		{"a denial has no wait", "4.1", retry(func([]time.Duration) time.Duration { return 0 })},
		{"the shortest wait counts", "4.1", retry(slices.Min[[]time.Duration])},
		{"the waits are added", "4.1", retry(func(waits []time.Duration) (sum time.Duration) {
			for _, d := range waits {
				sum += d
			}
			return sum
		})},
		{"a shadow limit's wait counts", "4.1", denying(func(_ *answer, d *weir.DeniedError) {
			for _, s := range d.Limits {
				d.RetryAfter = max(d.RetryAfter, s.RetryAfter)
			}
		})},
		{"slots return when they time out", "4.4", denying(func(_ *answer, d *weir.DeniedError) {
			for i := range d.Limits {
				d.RetryAfter = max(d.RetryAfter, d.Limits[i].RetryAfter)
			}
		})},
		{"nobody sees slots return", "4.4", denying(func(_ *answer, d *weir.DeniedError) {
			d.RetryAfter = 0
			for i := range d.Limits {
				if s := &d.Limits[i]; s.Exceeded && !s.Shadow {
					s.RetryLikely = 0
					d.RetryAfter = max(d.RetryAfter, s.RetryAfter)
				}
			}
		})},
		{"a slot is likely later than certain", "4.4",
			likely(func(s *weir.LimitStatus) time.Duration { return 2 * s.RetryAfter })},
		{"a slot is likely although none was seen", "4.4",
			likely(func(s *weir.LimitStatus) time.Duration { return max(1, s.RetryLikely) })},
		{"only the likely waits count", "4.4", denying(func(_ *answer, d *weir.DeniedError) {
			for i := range d.Limits {
				if s := &d.Limits[i]; s.RetryLikely > 0 {
					d.RetryAfter = s.RetryLikely
				}
			}
		})},
		{"a denial names only what denied", "4.1", denying(func(_ *answer, d *weir.DeniedError) {
			d.Limits = slices.DeleteFunc(d.Limits, func(s weir.LimitStatus) bool { return !s.Exceeded })
		})},
		{"a denial is an error like others", "errors that look like denials",
			denying(func(a *answer, _ *weir.DeniedError) { a.fail(refused(weir.Unavailable)) })},
		{"a denial is an error too", "errors that look like denials",
			denying(func(a *answer, d *weir.DeniedError) {
				a.fail(errors.Join(d, refused(weir.NeverSatisfiable)))
			})},
	}
}

// likely changes when slots that denied a request are likely to return, and the overall wait.
func likely(wait func(s *weir.LimitStatus) time.Duration) func(w *wrongWorld) {
	return denying(func(_ *answer, d *weir.DeniedError) {
		d.RetryAfter = 0
		for i := range d.Limits {
			s := &d.Limits[i]
			if !s.Exceeded || s.Shadow {
				continue
			}
			if s.Kind == weir.Concurrency {
				s.RetryLikely = wait(s)
			}
			d.RetryAfter = max(d.RetryAfter, s.ComeAgain())
		}
	})
}

// waitRules returns variants that break lines 1.4, 4.2 and 4.3.
func waitRules() []pointVariant {
	// waiting changes the wait for a limit that is exceeded; an empty kind means any.
	waiting := func(kind weir.Kind, wait func(j *model.Judged, right time.Duration) time.Duration) model.Points {
		return status(func(j *model.Judged, s *weir.LimitStatus) {
			if j.Wait != nil && j.Wait.Sign() > 0 && (kind == "" || s.Kind == kind) {
				s.RetryAfter = wait(j, s.RetryAfter)
			}
		})
	}
	bucket := func(more time.Duration) model.Points {
		return waiting(weir.Bucket, func(_ *model.Judged, right time.Duration) time.Duration {
			return right + more
		})
	}
	pieces := func(pick func(ends []int64) int64) model.Points {
		return waiting("", func(j *model.Judged, right time.Duration) time.Duration {
			if len(j.Pieces) == 0 || j.Limit.Kind == weir.Budget {
				return right
			}
			var ends []int64
			for _, p := range j.Pieces {
				ends = append(ends, p.Until)
			}
			return time.Duration(pick(ends)-j.Now) * time.Millisecond
		})
	}
	return []pointVariant{
		{"a bucket's wait is a millisecond short", "4.2", bucket(-time.Millisecond)},
		{"a bucket's wait is a millisecond long", "4.2", bucket(time.Millisecond)},
		{"a bucket's wait is rounded down", "1.4", bucket(-time.Millisecond)},
		{"a bucket's wait forgets the debt", "4.2",
			waiting(weir.Bucket, func(j *model.Judged, right time.Duration) time.Duration {
				if j.Bucket.Balance.Sign() >= 0 {
					return right
				}
				b := j.Bucket
				b.Balance = new(big.Int)
				return time.Duration(b.Wait(j.Want(), j.Now).Int64()) * time.Millisecond
			})},
		{"a window waits for the first unit", "4.2", pieces(slices.Min[[]int64])},
		{"a window waits for the last unit", "4.2", pieces(slices.Max[[]int64])},
		{"a budget waits for a day", "4.2",
			waiting(weir.Budget, func(*model.Judged, time.Duration) time.Duration { return 24 * time.Hour })},
		{"a long wait wraps", "4.3", waiting("", func(j *model.Judged, _ time.Duration) time.Duration {
			return time.Duration(j.Wait.Int64()) * time.Millisecond
		})},
		{"a long wait is a century", "4.3", waiting("", func(_ *model.Judged, right time.Duration) time.Duration {
			return min(right, 100*365*24*time.Hour)
		})},
	}
}
