package kernel_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// counterAndModel makes the same calls to a counter and to the model of the conformance suite,
// which computes them in another way. The model's limit is a shadow limit, so that it denies
// nothing.
type counterAndModel struct {
	*testing.T
	kernel.Counter

	model    conformance.ModelWorld
	ids      []weir.LeaseID
	seq      int64
	holdings []*driver.Holding
}

func newCounterAndModel(t *testing.T) *counterAndModel {
	t.Helper()
	start := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	m, err := conformance.OpenModel(conformance.Setup{Start: start}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &counterAndModel{T: t, model: m}
}

func (w *counterAndModel) now() int64 { return w.model.Now().UnixMilli() }

// define puts a limit in force.
func (w *counterAndModel) define(l *weir.Limit) {
	w.Helper()
	if w.Counter == nil {
		w.Counter = newCounter(w.now(), l)
	}
	w.Redefine(w.now(), l.Definition())
	w.must(nil, w.model.Configure(&weir.Definitions{System: []weir.Limit{*l}}))
}

func (w *counterAndModel) must(_ any, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *counterAndModel) reserve(n int64, l *weir.Limit) {
	w.Helper()
	p, ok := w.Take(w.now(), n)
	h := &driver.Holding{Take: driver.Take{Limit: l, Parts: []driver.Part{{Units: n}}}}
	if ok {
		h.Pieces = []driver.Piece{p}
	}
	w.holdings = append(w.holdings, h)
	r := &weir.Request{Entity: "e", Resource: "r", Costs: weir.Costs{"n": n}}
	lease, err := w.model.Reserve(w.Context(), r)
	w.must(lease, err)
	w.ids = append(w.ids, lease.ID)
}

func (w *counterAndModel) adjust(i int, to int64, l *weir.Limit) {
	w.Helper()
	h := w.holdings[i]
	c := kernel.Change{Pieces: h.Pieces, From: h.Cost(), To: to}
	h.Pieces, h.Parts = w.Apply(w.now(), c), []driver.Part{{Units: to}}
	w.seq++
	w.must(w.model.Adjust(w.Context(), w.ids[i], w.seq, []weir.Costs{{"n": to}}))
}

func (w *counterAndModel) renew(i int, l *weir.Limit) {
	w.Helper()
	w.holdings[i].Pieces = w.Counter.(*kernel.Concurrency).Extend(w.now(), w.holdings[i].Pieces)
	w.must(w.model.Extend(w.Context(), w.ids[i]))
}

// availableIn returns what the model has available after some milliseconds.
func (w *counterAndModel) availableIn(ms int64) int64 {
	w.Helper()
	w.model.Advance(time.Duration(ms) * time.Millisecond)
	statuses, err := w.model.Status(w.Context(), "e", "r")
	w.must(statuses, err)
	w.model.Advance(-time.Duration(ms) * time.Millisecond)
	return statuses[0].Available
}

// waitFor returns the milliseconds until the model has n units available.
func (w *counterAndModel) waitFor(n int64) int64 {
	w.Helper()
	id := weir.NewLeaseID(w.model.Now())
	r := &weir.Request{LeaseID: id, Entity: "e", Resource: "r", Costs: weir.Costs{"n": n}}
	lease, err := w.model.CloneFor(id).Reserve(w.Context(), r)
	w.must(lease, err)
	return lease.Limits[0].RetryAfter.Milliseconds()
}

// randomLimit returns a limit of a kind. Its units return within seconds, except those of a budget.
func randomLimit(rng *rand.Rand, kind weir.Kind, capacity int64) *weir.Limit {
	l := &weir.Limit{Name: "n", Kind: kind, Capacity: capacity, Shadow: true}
	length := []time.Duration{time.Second, 3 * time.Second, 10 * time.Second}[rng.IntN(3)]
	switch kind {
	case weir.Window:
		l.Window = length
	case weir.Concurrency:
		l.Timeout = length
	case weir.Budget:
		l.Every, l.Zone = []string{"hour", "day"}[rng.IntN(2)], "UTC"
	default:
		l.RefillAmount, l.RefillPeriod = 1+rng.Int64N(capacity), length
	}
	return l
}

func newCounter(now int64, l *weir.Limit) kernel.Counter {
	switch d := l.Definition(); l.Kind {
	case weir.Window:
		return kernel.NewWindow(now, d)
	case weir.Concurrency:
		return kernel.NewConcurrency(now, d)
	case weir.Budget:
		return kernel.NewBudget(now, d)
	default:
		return kernel.NewBucket(now, d)
	}
}

// TestCountersAgainstModel makes random calls to a counter and to the model while the definition of
// the limit changes, and compares what is available, now and soon, and when units are free.
func TestCountersAgainstModel(t *testing.T) {
	t.Parallel()
	for _, kind := range []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				checkAgainstModel(t, kind, seed)
			}
		})
	}
}

func checkAgainstModel(t *testing.T, kind weir.Kind, seed uint64) {
	t.Helper()
	const capacity = 100
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newCounterAndModel(t)
	slots := kind == weir.Concurrency
	for step := range 500 {
		w.model.Advance(time.Duration(rng.IntN(200)) * time.Millisecond)
		l := randomLimit(rng, kind, capacity)
		w.define(l)
		i := max(0, len(w.ids)-1-rng.IntN(12))
		switch move := rng.IntN(8); {
		case move < 3 || len(w.ids) == 0:
			w.reserve(int64(rng.IntN(12)), l)
		case !slots:
			w.adjust(i, int64(rng.IntN(15)), l)
		case move < 6:
			w.adjust(i, rng.Int64N(w.holdings[i].Cost()+1), l)
		default:
			w.renew(i, l)
		}
		w.check(l, int64(rng.IntN(capacity)))
		if t.Failed() {
			t.Fatalf("seed %d, step %d", seed, step)
		}
	}
}

func (w *counterAndModel) check(l *weir.Limit, want int64) {
	w.Helper()
	now, d := w.now(), l.Definition()
	for _, ms := range []int64{0, 700} {
		if got, want := w.AvailableAt(now+ms, d), w.availableIn(ms); got != want {
			w.Errorf("available in %d ms: got %d, want %d", ms, got, want)
		}
	}
	if got, want := w.FitsAt(now, want)-now, w.waitFor(want); got != want {
		w.Errorf("free in: got %d ms, want %d", got, want)
	}
}
