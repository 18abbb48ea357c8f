package livetest

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
)

// goneCallers is the number of callers that go away in each cell, if it is above zero.
var goneCallers = flag.Int("gone", 0, "how many `callers` go away in each cell (40, in a long run 10,000)")

// within is the time in which all units must be back.
const within = 2 * time.Second

// TestLeakedLeases plays the cells in virtual time.
func TestLeakedLeases(t *testing.T) {
	t.Parallel()
	seed := soak.Seed(t)
	table := &table{}
	t.Cleanup(func() { t.Log(table.String()) })
	for _, c := range cells(func(s *store) bool { return s.virtual }) {
		row := table.add(c)
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { row.play(t, seed) })
		})
	}
}

// TestLeakedLeasesDynamoDB plays the cells of DynamoDB Local.
func TestLeakedLeasesDynamoDB(t *testing.T) {
	t.Parallel()
	testkit.DynamoDB(t)
	live(t, "dynamodb")
}

// TestLeakedLeasesTigerBeetle plays the cells of a TigerBeetle server.
func TestLeakedLeasesTigerBeetle(t *testing.T) {
	t.Parallel()
	testkit.TigerBeetle(t)
	live(t, "tigerbeetle")
}

// live plays the cells of a store in real time: all of them in a long run, some in a plain one.
// They mostly wait, so several are played at the same time.
func live(t *testing.T, name string) {
	t.Helper()
	seed := soak.Seed(t)
	all := cells(func(s *store) bool { return s.name == name })
	if !soak.On() {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:len(all)/10]
	}
	table := &table{}
	defer func() { t.Log(table.String()) }()
	places := make(chan bool, soak.Amount(len(all), 3))
	var playing sync.WaitGroup
	for _, c := range all {
		row := table.add(c)
		playing.Go(func() {
			places <- true
			defer func() { <-places }()
			t.Run(c.String(), func(t *testing.T) { row.play(t, seed) })
		})
	}
	playing.Wait()
}

// cells returns the useful combinations for some stores.
func cells(of func(*store) bool) []*cell {
	var all []*cell
	for _, s := range stores() {
		if !of(s) {
			continue
		}
		for _, f := range fronts() {
			for _, network := range []string{direct, lateRequests, lateAnswers, lateStore} {
				if network == lateStore && !s.late ||
					f.direct && (network == lateRequests || network == lateAnswers) {
					continue
				}
				for servers := 1; servers <= 2; servers++ {
					if servers == 2 && f.direct && !s.shares {
						continue
					}
					all = append(all, &cell{f, s, network, servers})
				}
			}
		}
	}
	return all
}

// figures are the counts of a cell.
type figures struct {
	// got counts the callers that had a lease and settled it, under counts those that left while they
	// had one, and gone counts those that left without one. The others stayed and got none: a limit
	// denied it, or the store or a server did not answer.
	got, under, gone, denied, unanswered int
	// took has the times that it took to get a lease.
	took []time.Duration
	// These count answers: reservations admitted in addition to those of callers that stayed, and
	// refused because their lease had ended; cancels answered with 200, and with 404.
	admitted, refused, cancelled, early int64
	// held is the number of messages held back, and told the number of failures that were reported.
	held, told int64
	// doubts is the number of units whose refund the store reports as in doubt: they stay charged.
	doubts int64
}

// row is a cell with its figures.
type row struct {
	*cell
	figures

	waves int
	world *world        // nil before and after
	back  time.Duration // the longest time until all units were back
	lost  int
	left  error
}

// play runs waves until enough callers have gone away.
func (r *row) play(t *testing.T, seed uint64) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.cell.String()))
	d := &dice{rng: rand.New(rand.NewPCG(seed, h.Sum64()))}
	size, want := soak.Amount(20, 200), soak.Amount(40, 10_000)
	if *goneCallers > 0 {
		want = *goneCallers
	}
	mosts := []time.Duration{100 * time.Millisecond, 3 * time.Second, time.Second}
	if !r.store.virtual {
		size = soak.Amount(20, 500)
		if !soak.On() {
			mosts = []time.Duration{50 * time.Millisecond, 300 * time.Millisecond}
		}
	}
	slots := int64(size)
	if r.front.waits {
		slots /= 4
	}
	r.world = open(t, r.cell, d, slots)
	usual := 20 * time.Millisecond
	for ; r.gone < want && r.waves < 3*want/size && r.left == nil; r.waves++ {
		most := mosts[r.waves%len(mosts)]
		v := r.world.plans(size, most, usual)
		r.judge(t, v, most)
		usual = v.usual()
	}
	r.world.close() // the client waits for its cancels, more of which may fail
	y := &r.world.tally
	r.admitted = max(0, y.admitted.Load()-int64(r.got+r.under))
	r.refused, r.cancelled, r.early = y.refused.Load(), y.cancelled.Load(), y.early.Load()
	r.held, r.told = r.world.delays.held.Load(), r.world.reported.Load()
	r.doubts = r.world.doubts()
	r.world = nil // its store may have millions of records
	t.Logf("%s%s", heading, r)
	r.check(t)
}

// judge plays a wave and checks the units in use, first while some callers still have their leases,
// and then when these have settled too.
func (r *row) judge(t *testing.T, v *wave, most time.Duration) {
	t.Helper()
	w := r.world
	w.play(v, most)
	r.lost += w.tally.lost(t)
	for range 2 {
		back, left := w.settled(t, v)
		r.back = max(r.back, back)
		if r.left == nil {
			r.left = left
		}
		if v.staying.Load() == 0 {
			break
		}
		close(v.release)
		v.ended.Wait()
	}
	v.ended.Wait()
	w.keptBefore += v.kept.Load()
	r.got += v.got
	r.under += v.under
	r.gone += v.gone
	r.denied += v.denied
	r.unanswered += v.unanswered
	for _, err := range v.failed[:min(3, len(v.failed))] {
		t.Logf("not served: %v", err)
	}
}

// check compares the figures with the expected ones.
func (r *row) check(t *testing.T) {
	t.Helper()
	latest := within
	if !r.store.virtual && !soak.On() {
		latest = patience // the machine may be busy
	}
	switch {
	case r.left != nil:
		t.Errorf("%v after wave %d: %v", patience, r.waves, r.left)
	case r.back > latest:
		t.Errorf("all was back after %v, want %v", r.back, latest)
	}
	callers := r.callers()
	// On memory all decisions must be equal, elsewhere 99 of 100.
	if most := callers / 100; r.denied > most && r.doubts == 0 || r.denied > 0 && r.store.name == "memory" {
		t.Errorf("%d of %d callers were denied what fits", r.denied, callers)
	}
	if most := r.mayFail(callers); r.unanswered > most {
		t.Errorf("%d of %d callers had no answer, want at most %d", r.unanswered, callers, most)
	}
	if r.got == 0 || r.gone == 0 && !r.front.direct { // a store in the process may answer at once
		t.Errorf("%d callers were served and %d went away: nothing was tried", r.got, r.gone)
	}
	if r.told > int64(r.mayFail(callers)) && r.network != lateStore {
		t.Errorf("%d settlements were reported as failed", r.told)
	}
}

// callers returns the number of callers.
func (r *row) callers() int { return r.got + r.under + r.gone + r.denied + r.unanswered }

// mayFail returns how many of the callers, or of the settlements, may have no answer.
func (r *row) mayFail(callers int) int {
	if r.network == lateStore || !r.store.virtual {
		return callers / 4 // the store gets a second to answer
	}
	return 0
}

// table has a row for each cell.
type table struct {
	rows []*row
}

func (b *table) add(c *cell) *row {
	r := &row{cell: c}
	b.rows = append(b.rows, r)
	return r
}

func (b *table) String() string {
	var s strings.Builder
	s.WriteString(heading)
	for _, r := range b.rows {
		if r.waves > 0 {
			s.WriteString(r.String())
		}
	}
	return s.String()
}

// heading names the columns of a table: the outcomes of the callers, and the numbers of
// reservations admitted for callers that had left, messages held back, reservations refused because
// their lease had ended, cancels answered with 200 and with 404, answers that a client without a
// library did not receive, and failures that were reported.
const heading = "\nstore       front      network       n callers served  under   gone denied  unans" +
	" admitd   held refusd cancel  early   lost   told back ms left\n"

// String returns a line of a table.
func (r *row) String() string {
	left := "nothing"
	if r.left != nil {
		left = strings.ReplaceAll(r.left.Error(), "\n", "; ")
	}
	return fmt.Sprintf(
		"%-11s %-10s %-13s %1d %7d %6d %6d %6d %6d %6d %6d %6d %6d %6d %6d %6d %6d %7d %s\n",
		r.store.name, r.front.name, r.network, r.servers,
		r.callers(), r.got, r.under, r.gone, r.denied, r.unanswered,
		r.admitted, r.held, r.refused, r.cancelled, r.early, r.lost, r.told, r.back.Milliseconds(), left)
}
