package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// runner does the work of one side; the parent's children in a run, a pipe in a test.
type runner interface {
	run(work string, ops int) (measure, error)
}

// result is what an item came to.
type result struct {
	item   *item
	totals []measure // of each side
	rounds [][]measure
	took   time.Duration
}

// maxOps bounds a slice, whatever the calibration says.
const maxOps = 50_000_000

// alternate runs the sides of an item in turn, round after round, each for about a slice, the order
// turned by one each round: what disturbs the machine for longer than a slice disturbs all alike.
func alternate(
	ctx context.Context, it *item, worlds []runner, rounds int, slice time.Duration,
) (*result, error) {
	started := time.Now()
	res := &result{item: it, totals: make([]measure, len(it.sides))}
	ops := make([]int, len(it.sides))
	for i, s := range it.sides {
		n, err := calibrate(ctx, worlds[s.world], s.work, slice)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", it.name, s.label, err)
		}
		ops[i] = n
	}
	for round := range rounds {
		measures := make([]measure, len(it.sides))
		for k := range it.sides {
			i := (k + round) % len(it.sides)
			if round/len(it.sides)%2 == 1 {
				i = len(it.sides) - 1 - i
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("%s: %w", it.name, err)
			}
			m, err := worlds[it.sides[i].world].run(it.sides[i].work, ops[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", it.name, it.sides[i].label, err)
			}
			measures[i] = m
			res.totals[i].add(m)
		}
		res.rounds = append(res.rounds, measures)
	}
	res.took = time.Since(started)
	return res, nil
}

// calibrate finds how many operations take about a slice, and warms the side up with it. The fastest
// of its tries counts, and it tries a few times at least: a collection of garbage in one of them must
// not make all slices tiny.
func calibrate(ctx context.Context, r runner, work string, slice time.Duration) (int, error) {
	const least, most = 3, 30
	n, fastest := 100, int64(math.MaxInt64)
	for try := range most {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		m, err := r.run(work, n)
		if err != nil {
			return 0, err
		}
		if m.Ops == 0 {
			return 0, fmt.Errorf("work %q did nothing", work)
		}
		fastest = min(fastest, max(1, m.picoseconds()))
		whole := int(min(maxOps, max(1, slice.Nanoseconds()*1000/fastest)))
		if whole <= n && try+1 >= least {
			return whole, nil
		}
		n = max(n, min(3*n, whole))
	}
	return n, nil
}

// ratios returns the ratio of two sides in each round, in thousandths.
func (r *result) ratios(x ratio) []int64 {
	var out []int64
	for _, measures := range r.rounds {
		out = append(out, thousandths(measures[x.over].picoseconds(), measures[x.under].picoseconds()))
	}
	return out
}
