package stream_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// load reserves and completes for some entities. It leaves some leases open and returns them.
type load struct {
	rng  *rand.Rand
	open []openLease
}

type openLease struct {
	*weir.Lease

	entity string
	costs  weir.Costs
}

// run makes n reservations, and settles earlier ones and most of these.
func (o *load) run(w *world, n int) {
	w.Helper()
	l := w.process()
	for _, e := range o.open {
		w.complete(l, e.Lease, e.entity, e.costs, weir.Costs{"tpm": o.rng.Int64N(2000)})
	}
	o.open = nil
	for range n {
		e := openLease{entity: fmt.Sprintf("e%d", o.rng.IntN(4))}
		e.costs = weir.Costs{"rpm": 1, "tpm": 1 + o.rng.Int64N(1000)}
		e.Lease = w.take(l, e.entity, e.costs)
		if o.rng.IntN(4) == 0 {
			o.open = append(o.open, e)
			continue
		}
		w.complete(l, e.Lease, e.entity, e.costs, weir.Costs{"tpm": o.rng.Int64N(2000)})
	}
	w.close(l)
}

// TestCountHours checks that the hours equal an independent tally, across the end of an hour that is
// also the end of a day and of a month.
func TestCountHours(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits("rpm", "tpm")
	o := &load{rng: rand.New(rand.NewPCG(soak.Seed(t), 0))}
	for i := range 4 {
		w.at(start.Add(time.Duration(i) * 7 * time.Minute))
		o.run(w, soak.Amount(10, 100))
	}
	s := w.count()
	w.judge(hours(w.usage()), hours(w.tally))
	t.Logf("%+v", s)
	w.count()
	w.judge(hours(w.usage()), hours(w.tally))
}
