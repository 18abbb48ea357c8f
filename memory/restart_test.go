package memory_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// restarted makes the same calls to a store that stays open and to one that is closed and opened
// again now and then.
type restarted struct {
	t      *testing.T
	file   string
	limits []weir.Limit
	// steady and broken have the same leases at the same indexes.
	steady, broken   *world
	leases, restored []*lease
}

// reserve reserves in both and compares the answers.
func (r *restarted) reserve(charges []weir.Charge) {
	r.t.Helper()
	r.broken.made = r.steady.made // to make the same IDs
	res := r.steady.reservation(charges...)
	want, wantErr := r.steady.try(res)
	got, gotErr := r.broken.try(r.broken.reservation(charges...))
	if (gotErr == nil) != (wantErr == nil) {
		r.t.Fatalf("reserve: got %v, want %v", gotErr, wantErr)
	}
	if wantErr != nil {
		return
	}
	if got.Denied != want.Denied || !reflect.DeepEqual(got.Limits, want.Limits) {
		r.t.Fatalf("reserve: got %+v, want %+v", got, want)
	}
	if !want.Denied {
		r.leases = append(r.leases, &lease{id: res.ID, holdings: want.Holdings})
		r.restored = append(r.restored, &lease{id: res.ID, holdings: got.Holdings})
	}
}

// settle applies an update to a lease in both. It drops a lease that has ended.
func (r *restarted) settle(i int, verb weir.Verb, totals weir.Costs) {
	r.t.Helper()
	if known := r.broken.recover(r.leases[i].id); known == nil || known.State != driver.LeaseLive {
		r.drop(i) // the lease has expired
		return
	}
	r.steady.settle(r.leases[i], verb, totals)
	r.broken.settle(r.restored[i], verb, totals)
	if verb == weir.VerbComplete || verb == weir.VerbCancel {
		r.drop(i)
	}
}

func (r *restarted) drop(i int) {
	last := len(r.leases) - 1
	r.leases[i], r.restored[i] = r.leases[last], r.restored[last]
	r.leases, r.restored = r.leases[:last], r.restored[:last]
}

func (r *restarted) restart() {
	r.t.Helper()
	r.broken.restart(r.t, r.file, r.limits...)
	for _, l := range r.restored {
		known := r.broken.recover(l.id)
		if known == nil {
			r.t.Fatalf("lease %v is lost", l.id)
		}
		l.holdings = known.Holdings
	}
}

// TestRestartsChangeNoAnswer makes the same random calls to a store that is never closed and to one
// that is opened again every few calls.
func TestRestartsChangeNoAnswer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 5))
		r := &restarted{t: t, file: filepath.Join(t.TempDir(), "state"), limits: four()}
		r.steady = newWorld(t, r.limits...)
		r.broken = snapshotWorld(t, r.file, r.limits...)
		ms := int64(0)
		for range 400 {
			ms += rng.Int64N(3_000)
			r.steady.at(ms)
			r.broken.at(ms)
			switch move := rng.IntN(20); {
			case move == 0:
				r.restart()
			case move < 9 || len(r.leases) == 0:
				r.reserve(randomCharges(rng))
			default:
				verbs := []weir.Verb{
					weir.VerbAdjust, weir.VerbAdjust, weir.VerbComplete, weir.VerbCancel, weir.VerbExtend,
				}
				totals := weir.Costs{"a": rng.Int64N(5), "b": rng.Int64N(5), "d": rng.Int64N(3)}
				r.settle(rng.IntN(len(r.leases)), verbs[rng.IntN(len(verbs))], totals)
			}
			r.compare()
		}
		r.broken.close()
	}
}

func randomCharges(rng *rand.Rand) []weir.Charge {
	var charges []weir.Charge
	for _, i := range rng.Perm(3)[:1+rng.IntN(2)] {
		charges = append(charges, weir.Charge{
			Entity: "e" + strconv.Itoa(i), Resource: subjectResource,
			Costs: weir.Costs{"a": rng.Int64N(4), "b": rng.Int64N(4), "d": rng.Int64N(2)},
		})
	}
	return charges
}

// compare compares the status of every limit in both.
func (r *restarted) compare() {
	r.t.Helper()
	var answers [2][]weir.LimitStatus
	for i, w := range []*world{r.steady, r.broken} {
		var of []weir.Subject
		for e := range 3 {
			of = append(of, weir.Subject{Entity: "e" + strconv.Itoa(e), Resource: subjectResource})
		}
		var err error
		answers[i], err = w.store.Status(context.Background(), w.now, w.judged(of...))
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		r.t.Fatalf("at %v: got %+v, want %+v", r.steady.now.Sub(start)/time.Millisecond, answers[1], answers[0])
	}
}
