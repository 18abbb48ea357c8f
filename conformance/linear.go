package conformance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// Load is the amount of work of a check for linearizability.
type Load struct {
	// Seed is the seed of the random calls. It is printed.
	Seed uint64
	// Histories is the number of worlds to open and drive, one after the other.
	Histories int
	// Goroutines is the number of concurrent callers.
	Goroutines int
	// Calls is the number of calls of each goroutine.
	Calls int
}

// checkTime is how long the checker may take for one history. Running out of time is a failure.
const checkTime = time.Minute

// Linearizable drives worlds from several goroutines and checks every history of calls and answers:
// there must be an order of the calls, consistent with when each was made and answered, in which
// calls made one after the other would have given the same answers. All calls of a history carry
// the same now. The outcomes are counted and printed.
func Linearizable(t T, h Harness, load Load) {
	t.Helper()
	t.Logf("linearizability: seed %d", load.Seed)
	w := linearWorldOf(&h)
	counts := map[string]int{}
	calls, overlapping, began := 0, 0, time.Now()
	var checked time.Duration
	for i := range load.Histories {
		seed := load.Seed + uint64(i)
		history := runHistory(t, h, load, seed)
		calls += len(history)
		for _, o := range history {
			if o.Return > o.Call+1 {
				overlapping++
			}
			counts[o.Input.(*linearCall).outcome(o.Output.(*linearAnswer))]++
		}
		checking := time.Now()
		if !checkHistory(t, &w, history) {
			t.Errorf("history %d (seed %d) has no order in which it makes sense", i, seed)
			return
		}
		checked += time.Since(checking)
	}
	t.Logf("%d histories of %d goroutines, %d calls, %d of them while another was made or answered: "+
		"all linearizable, in %v, of which checking %v", load.Histories, load.Goroutines, calls,
		overlapping, time.Since(began).Round(time.Millisecond), checked.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[name], name)
	}
	contended, admitted := counts["reserve: contended"], counts["reserve: done"]
	if contended > admitted {
		t.Errorf("%d reservations were contended and %d admitted, want most of them admitted",
			contended, admitted)
	}
}

// runHistory has the goroutines make their calls in a world, and returns the calls and answers with
// their order.
func runHistory(t T, h Harness, load Load, seed uint64) []porcupine.Operation {
	t.Helper()
	world := h.Open(t, linearSetup(new(linearWorldOf(&h))))
	defer func() {
		if err := world.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var ids [linearGroups][linearSlots]weir.LeaseID
	for g := range ids {
		for i := range ids[g] {
			ids[g][i] = weir.NewLeaseID(world.Now())
		}
	}
	var stamp atomic.Int64
	histories := make([][]porcupine.Operation, load.Goroutines)
	ctx := yielding{t.Context()}
	concurrently(load.Goroutines, func(client int) {
		c := linearClient{rand.New(rand.NewPCG(seed, uint64(client))), h.ChargesFirst}
		mine := make([]porcupine.Operation, 0, load.Calls)
		for i := range load.Calls {
			call := c.next(i, load.Calls)
			o := porcupine.Operation{ClientId: client, Input: &call, Call: stamp.Add(1)}
			answer, _ := call.play(ctx, world, ids[call.group][call.slot])
			o.Output, o.Return = &answer, stamp.Add(1)
			mine = append(mine, o)
			runtime.Gosched()
		}
		histories[client] = mine
	})
	return slices.Concat(histories...)
}

// yielding is a context and an observer that yield to other goroutines whenever a call checks its
// context, and before it returns, so that calls overlap even on a machine with few processors.
type yielding struct{ context.Context }

// Err implements [context.Context].
func (y yielding) Err() error {
	runtime.Gosched()
	return y.Context.Err()
}

// Observe implements [limiter.Observer].
func (yielding) Observe(context.Context, limiter.Event) { runtime.Gosched() }

// checkHistory checks each group of entities separately.
func checkHistory(t T, w *linearWorld, history []porcupine.Operation) bool {
	t.Helper()
	groups := make([][]porcupine.Operation, linearGroups)
	for _, o := range history {
		g := o.Input.(*linearCall).group
		groups[g] = append(groups[g], o)
	}
	m, err := linearModel(w)
	if err != nil {
		t.Fatalf("open the model: %v", err)
	}
	for _, group := range groups {
		if !w.servers && !repeatsAgree(t, group) {
			return false
		}
		switch porcupine.CheckOperationsTimeout(m, group, checkTime) {
		case porcupine.Ok:
		case porcupine.Unknown:
			t.Errorf("the checker ran out of its %v on %d calls", checkTime, len(group))
			return false
		default:
			t.Logf("%s", explainIllegal(m, group))
			return false
		}
	}
	return true
}

// repeatsAgree compares the answers of all admitted reservations of one lease, each of which must
// repeat the first. Another server knows the first answer only from the store's record, which does
// not have the available units.
func repeatsAgree(t T, group []porcupine.Operation) bool {
	t.Helper()
	answers := map[int8]*linearAnswer{}
	for _, o := range group {
		c, a := o.Input.(*linearCall), o.Output.(*linearAnswer)
		if c.verb != weir.VerbReserve || a.denied || a.contended || a.code != "" {
			continue
		}
		if first := answers[c.slot]; first != nil && *first != *a {
			t.Errorf("%v: answered with %v and with %v", c, first, a)
			return false
		}
		answers[c.slot] = a
	}
	return true
}

// explainIllegal returns the calls around the point at which a history stops being linearizable.
func explainIllegal(m porcupine.Model, group []porcupine.Operation) string {
	_, info := porcupine.CheckOperationsVerbose(m, group, checkTime)
	longest := 0
	var last []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations() {
		for _, p := range partial {
			if len(p) > longest {
				longest, last = len(p), p
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d calls can be put in order; the last ones are\n", longest, len(group))
	inOrder := map[int64]bool{}
	for i, o := range last {
		inOrder[o.Call] = true
		if i >= len(last)-10 {
			describe(&b, o)
		}
	}
	b.WriteString("and then none of\n")
	slices.SortFunc(group, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	shown := 0
	for _, o := range group {
		if !inOrder[o.Call] && shown < 10 {
			describe(&b, o)
			shown++
		}
	}
	return b.String()
}

func describe(b *strings.Builder, o porcupine.Operation) {
	fmt.Fprintf(b, "  [%d, %d] client %d: %v: %v\n", o.Call, o.Return, o.ClientId,
		o.Input.(*linearCall), o.Output.(*linearAnswer))
}
