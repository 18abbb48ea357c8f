package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// storeSetup describes how the comparisons on one store run and what they report.
type storeSetup struct {
	// open sets the store up for one round. Each contestant is started on it, warmed up, measured
	// for some seconds and ended before the next one is started. These comparisons take minutes, so
	// they run only if -run names them. If open is nil, all contestants are started once, and take
	// turns in short slices.
	open func(ctx context.Context, s *settings) (*instance, error)
	// warm returns the order that warms up a contestant, except for its work.
	warm func(s *settings) command
	// operation names what a caller does once. rounds describes the rounds in the report.
	operation string
	rounds    func(s *settings) string
	columns   []column
}

// instance is a store that was opened for one round.
type instance struct {
	environment environment
	// prepare completes the spec of a contestant, so that it has a table or namespace to itself.
	prepare func(ctx context.Context, name string, s *spec) error
	// cpu returns the processor time of the store in nanoseconds; 0 if it is not known.
	cpu   func() int64
	close func()
}

// environment configures the processes that are started.
type environment struct {
	python    string   // the path of a Python that has zae-limiter
	variables []string // added to the variables of this process
}

// errLeftOut is the error of a comparison that cannot run here, which is not a failure.
var errLeftOut = errors.New("left out")

// result holds the replies of a comparison by round and side.
type result struct {
	*comparison

	settings *settings
	rounds   [][]reply
}

// compare runs a comparison.
func compare(ctx context.Context, c *comparison, s *settings) (*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &result{comparison: c, settings: s}
	if c.store.open == nil {
		return r, r.alternate(ctx)
	}
	for round := range s.runs {
		replies, err := r.runRound(ctx, round)
		if err != nil {
			return nil, err
		}
		r.rounds = append(r.rounds, replies)
	}
	return r, nil
}

// inTurn returns the order of n contestants in a round: it rotates by one each round, and runs
// backwards after a whole rotation.
func inTurn(round, n int) []int {
	out := make([]int, n)
	for k := range out {
		i := (k + round) % n
		if round/n%2 == 1 {
			i = n - 1 - i
		}
		out[k] = i
	}
	return out
}

// runner runs the orders to a contestant. It is a [team], except in tests.
type runner interface {
	run(o command) (reply, error)
}

// alternate starts all contestants, and has the sides take turns in short slices, so that a
// disturbance of the machine that lasts longer than a slice affects all of them.
func (r *result) alternate(ctx context.Context) (err error) {
	teams := make(map[*contestant]runner)
	for i, c := range r.contestants() {
		t, opened := openTeam(ctx, c, &environment{})
		defer func() { err = errors.Join(err, t.stop()) }()
		if opened != nil {
			return opened
		}
		teams[c] = t
		if i == 0 && r.settings.profile != "" {
			if _, err := t.run(command{Profile: r.settings.profile}); err != nil {
				return err
			}
		}
	}
	return r.takeTurns(ctx, teams)
}

func (r *result) takeTurns(ctx context.Context, teams map[*contestant]runner) error {
	orders := make([]command, len(r.sides))
	for i, s := range r.sides {
		ops, err := calibrate(ctx, teams[s.by], s.work, r.settings.slice)
		if err != nil {
			return fmt.Errorf("%s: %w", s.label, err)
		}
		orders[i] = command{Work: s.work, Ops: ops}
	}
	for round := range r.settings.rounds {
		replies := make([]reply, len(r.sides))
		for _, i := range inTurn(round, len(r.sides)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			if replies[i], err = r.measure(teams[r.sides[i].by], i, orders[i]); err != nil {
				return err
			}
		}
		r.rounds = append(r.rounds, replies)
	}
	return nil
}

// measure has a side do its work. All of it must be admitted, or denied if nothing is left.
func (r *result) measure(by runner, i int, o command) (reply, error) {
	side := &r.sides[i]
	got, err := by.run(o)
	if err != nil {
		return got, fmt.Errorf("%s: %w", side.label, err)
	}
	wrong := got.Denied
	if side.by.spec.Empty {
		wrong = got.Ops - got.Denied
	}
	if wrong > 0 || got.Ops == 0 {
		return got, fmt.Errorf("%s: of %d operations %d were admitted and %d denied; want all the same",
			side.label, got.Ops, got.Admitted, got.Denied)
	}
	return got, nil
}

// maxOps bounds the operations of a slice.
const maxOps = 50_000_000

// calibrate finds how many operations take about a slice, and warms the side up with them. It makes
// at least three tries and takes the fastest, because a garbage collection during a single try
// would make all slices tiny.
func calibrate(ctx context.Context, by runner, work string, slice time.Duration) (int, error) {
	const leastTries, mostTries = 3, 30
	n, fastest := 100, math.Inf(1)
	for try := range mostTries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		r, err := by.run(command{Work: work, Ops: n})
		if err != nil {
			return 0, err
		}
		if r.Ops == 0 {
			return 0, fmt.Errorf("work %q did nothing", work)
		}
		fastest = min(fastest, max(0.001, r.perOp(r.NS)))
		whole := int(min(maxOps, max(1, float64(slice.Nanoseconds())/fastest)))
		if whole <= n && try+1 >= leastTries {
			return whole, nil
		}
		n = max(n, min(3*n, whole))
	}
	return n, nil
}

// runRound opens the store, and runs the contestants on it one after the other.
func (r *result) runRound(ctx context.Context, round int) ([]reply, error) {
	at, err := r.store.open(ctx, r.settings)
	if err != nil {
		return nil, err
	}
	defer at.close()
	replies, contestants := make([]reply, len(r.sides)), r.contestants()
	for _, i := range inTurn(round, len(contestants)) {
		if err := r.runContestant(ctx, at, i, contestants[i], replies); err != nil {
			return nil, err
		}
	}
	if r.sameCounts {
		return replies, sameCounts(replies)
	}
	return replies, nil
}

// runContestant warms one contestant up, and fills in the replies of its sides.
func (r *result) runContestant(
	ctx context.Context, at *instance, i int, c *contestant, replies []reply,
) (err error) {
	prepared := *c
	if err := at.prepare(ctx, fmt.Sprintf("bench-%d", i), &prepared.spec); err != nil {
		return err
	}
	t, err := openTeam(ctx, &prepared, &at.environment)
	defer func() { err = errors.Join(err, t.stop()) }()
	if err != nil {
		return err
	}
	warm := false
	for k, s := range r.sides {
		if s.by != c {
			continue
		}
		if !warm {
			o := r.store.warm(r.settings)
			o.Work = s.work
			if _, err := t.run(o); err != nil {
				return fmt.Errorf("%s: %w", s.label, err)
			}
			warm = true
		}
		o := command{Work: s.work, NS: r.settings.length.Nanoseconds()}
		if i == 0 {
			o.Profile = r.settings.profile
		}
		before := at.cpu()
		if replies[k], err = r.measure(t, k, o); err != nil {
			return err
		}
		replies[k].Other = at.cpu() - before
	}
	return nil
}

// sameCounts returns an error if the two sides made different requests: if a count per operation
// differs by more than a fiftieth.
func sameCounts(replies []reply) error {
	for i := range replies {
		a, b := &replies[0], &replies[i]
		for name := range a.Counts {
			x, y := a.perOp(a.Counts[name]), b.perOp(b.Counts[name])
			if !near(x, y) {
				return fmt.Errorf("an operation was %.2f %s and %.2f on another side; want the same", x, name, y)
			}
		}
	}
	return nil
}

// near reports whether two numbers differ by at most a fiftieth.
func near(a, b float64) bool { return max(a, b)-min(a, b) <= max(a, b)/50 }
