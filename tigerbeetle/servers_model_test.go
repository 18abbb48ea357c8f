//go:build cgo

package tigerbeetle

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// modelServers makes the same calls on several servers of a cluster, each call on one of them, and
// on a model that knows nothing of servers.
type modelServers struct {
	*cluster

	random  *rand.Rand
	d       *weir.Definitions
	servers []*limiter.Limiter
	model   conformance.ModelWorld
	// amounts returns the amounts to ask for, leases are those that were admitted, and played are
	// the calls that were made.
	amounts func(r *rand.Rand) int64
	limits  []string
	leases  []*weir.Request
	seq     int64
	played  []string
	// outcomes counts the answers by their meaning.
	outcomes map[string]int
}

func newModelServers(
	t *testing.T, seed uint64, d *weir.Definitions, amounts func(r *rand.Rand) int64,
) *modelServers {
	t.Helper()
	c := newCluster(t, 0)
	c.ledger = emulator.New(&emulator.Options{Now: c.clock.now, Tick: time.Millisecond})
	b := &modelServers{
		cluster: c, random: rand.New(rand.NewPCG(seed, 7)), d: d, amounts: amounts,
		outcomes: make(map[string]int),
	}
	var err error
	b.model, err = conformance.OpenModel(conformance.Setup{
		Start: c.clock.now(), Definitions: d, Options: limiter.Options{CacheTTL: -1},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.servers = append(b.servers, b.begin())
	}
	c.pass(time.Second) // so that leases may be a little old
	b.model.Advance(time.Second)
	for _, l := range d.System {
		b.limits = append(b.limits, l.Name)
	}
	return b
}

// begin opens a server. It uses the exact time, because units taken again would otherwise end late.
func (b *modelServers) begin() *limiter.Limiter {
	b.t.Helper()
	s, err := OpenLedger(b.t.Context(), b.ledger, &Options{
		Definitions: b.d, Poll: -1, Now: b.clock.now,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: b.clock.now, CacheTTL: -1})
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// describeAnswer returns a word for what an answer means.
func describeAnswer(err error) string {
	if err == nil {
		return "done"
	}
	if e, ok := errors.AsType[*weir.DeniedError](err); ok {
		if e.Contended {
			return "contended"
		}
		return "denied"
	}
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return string(e.Code)
	}
	return err.Error()
}

// explainsDifference reports whether the answers differ only because the server uses what it knows
// of a lease that another one has ended: a mistake in the call is reported first, and a lease that
// is live here has not been forgotten.
func explainsDifference(adjusts bool, is, should string) bool {
	over := []weir.Code{weir.Ended, weir.Conflict, weir.UnknownLease}
	wrong := append(slices.Clone(over), weir.NeverSatisfiable)
	return slices.Contains(over, weir.Code(should)) && slices.Contains(wrong, weir.Code(is)) ||
		is == "done" && should == string(weir.UnknownLease) || // cancelled already
		is == "done" && should == string(weir.Ended) && adjusts || // by what it was adjusted to
		is == string(weir.Ended) && should == string(weir.Invalid) // as too old
}

// play makes one call on a server and on the model, and compares the answers.
func (b *modelServers) play(what string, do func(s weir.Service) error) bool {
	b.t.Helper()
	at := b.random.IntN(len(b.servers))
	got, want := do(b.servers[at]), do(b.model)
	b.played = append(b.played, fmt.Sprintf("%d: %s: %s", at, what, describeAnswer(want)))
	b.outcomes[describeAnswer(want)]++
	adjusts := strings.HasPrefix(what, "adjust")
	if is, should := describeAnswer(got), describeAnswer(want); is != should && !explainsDifference(adjusts, is, should) {
		b.fail("got %v, the model says %v", got, want)
	}
	return want == nil
}

func (b *modelServers) fail(format string, args ...any) {
	b.t.Helper()
	from := max(len(b.played)-60, 0)
	for _, p := range b.played[from:] {
		b.t.Log(p)
	}
	b.t.Fatalf(format, args...)
}

// look compares what is available on a server with the model.
func (b *modelServers) look(entity string) {
	b.t.Helper()
	got, err := b.servers[b.random.IntN(len(b.servers))].Status(b.t.Context(), entity, "r")
	if err != nil {
		b.fail("status: %v", err)
	}
	want, err := b.model.Status(b.t.Context(), entity, "r")
	if err != nil || len(got) != len(want) {
		b.fail("status: %d limits, the model says %d, %v", len(got), len(want), err)
	}
	for i := range want {
		if got[i].Available != want[i].Available {
			b.fail("%s %s: %d available, the model says %d",
				entity, want[i].Limit, got[i].Available, want[i].Available)
		}
	}
}

// amount returns an amount to ask of a limit. A take that a shadow limit could not count leaves no
// trace of how many slots it was, so amounts of slots are small.
func (b *modelServers) amount(name string) int64 {
	n := b.amounts(b.random)
	if name == "s" && b.d.System[2].Shadow {
		n = min(n, 11)
	}
	if name == "b" { // a server that has not learned of a debt at the limit of 64 bits would add to it
		n = min(n, math.MaxInt64/1000/1024)
	}
	return n
}

func (b *modelServers) costs() weir.Costs {
	costs := weir.Costs{}
	for _, name := range b.limits {
		if b.random.IntN(2) == 0 {
			costs[name] = b.amount(name)
		}
	}
	if len(costs) == 0 {
		name := b.limits[b.random.IntN(len(b.limits))]
		costs[name] = b.amount(name)
	}
	return costs
}

// reserve makes a new request or repeats an earlier one.
func (b *modelServers) reserve() {
	b.t.Helper()
	r := &weir.Request{LeaseID: weir.NewLeaseID(b.clock.now().Add(-time.Millisecond))}
	r.Charges = []weir.Charge{{Entity: "e", Resource: "r", Costs: b.costs()}}
	if b.random.IntN(4) == 0 {
		r.Charges = append(r.Charges, weir.Charge{Entity: "f", Resource: "r", Costs: b.costs()})
	}
	again := b.random.IntN(4) == 0 && len(b.leases) > 0
	if again {
		c := *b.leases[b.random.IntN(len(b.leases))]
		if r = &c; b.random.IntN(4) == 0 {
			r.Charges = []weir.Charge{{Entity: "e", Resource: "r", Costs: b.costs()}}
		}
	}
	did := b.play(fmt.Sprintf("reserve %s %v", r.LeaseID, r.Charges), func(s weir.Service) error {
		_, err := s.Reserve(b.t.Context(), r)
		return err
	})
	if did && !again {
		b.leases = append(b.leases, r)
	}
}

// settle updates a lease that was admitted at some time.
func (b *modelServers) settle() {
	b.t.Helper()
	if len(b.leases) == 0 {
		return
	}
	r := b.leases[b.random.IntN(len(b.leases))]
	var totals []weir.Costs
	for i := range r.Charges {
		set := weir.Costs{}
		for _, name := range b.limits {
			if _, ok := r.Charges[i].Costs[name]; ok && b.random.IntN(3) > 0 {
				set[name] = b.amount(name)
			}
		}
		totals = append(totals, set)
	}
	id, ctx := r.LeaseID, b.t.Context()
	switch b.random.IntN(5) {
	case 0:
		b.play(fmt.Sprintf("complete %s %v", id, totals), func(s weir.Service) error {
			return last(s.Complete(ctx, id, totals))
		})
	case 1:
		b.play(fmt.Sprintf("cancel %s", id), func(s weir.Service) error { return last(s.Cancel(ctx, id)) })
	case 2:
		b.play(fmt.Sprintf("extend %s", id), func(s weir.Service) error { return last(s.Extend(ctx, id)) })
	default:
		b.seq++
		for range 1 + b.random.IntN(2) { // and again, perhaps on another server
			b.play(fmt.Sprintf("adjust %s %d %v", id, b.seq, totals), func(s weir.Service) error {
				return last(s.Adjust(ctx, id, b.seq, totals))
			})
		}
	}
}

// later lets time pass.
func (b *modelServers) later(d time.Duration) {
	b.pass(d)
	b.model.Advance(d)
	b.played = append(b.played, "it is "+b.clock.now().Format(time.TimeOnly))
}

// step makes one call of each sort.
func (b *modelServers) step() {
	b.t.Helper()
	switch n := b.random.IntN(20); {
	case n < 8:
		b.later(time.Second) // until remembered denials are forgotten
		b.reserve()
	case n < 16:
		b.settle()
	case n < 18:
		d := []time.Duration{time.Second, 7 * time.Second, 45 * time.Second, 4 * time.Minute}[b.random.IntN(4)]
		b.later(d)
	default:
		b.played = append(b.played, "restart")
		b.servers[b.random.IntN(len(b.servers))] = b.begin()
	}
	b.look("e")
	b.look("f")
}

// limitsOfAllKinds returns limits of all kinds, of an entity and of its parent.
func limitsOfAllKinds(capacity int64, shadow bool) *weir.Definitions {
	d := fourLimits(capacity)
	d.System[0].Capacity = min(capacity, math.MaxInt64/1000)
	d.System[2].Timeout, d.System[3].Window = 2*time.Minute, time.Minute
	for i := range d.System {
		d.System[i].Shadow = shadow
	}
	d.Entities = map[string]weir.EntityDefinition{"f": {}, "e": {Parent: "f", Cascade: true}}
	return d
}

// TestServersAmounts checks that several servers answer calls with extreme amounts as the model
// does.
func TestServersAmounts(t *testing.T) {
	t.Parallel()
	const bucketMost = math.MaxInt64 / 1000
	edges := []int64{
		0, 1, 2, 9, 10, 11, bucketMost - 1, bucketMost, bucketMost + 1,
		math.MaxInt64/2 + 1, math.MaxInt64 - 1, math.MaxInt64,
	}
	amounts := func(r *rand.Rand) int64 { return edges[r.IntN(len(edges))] }
	seen := make(map[string]int)
	for _, capacity := range []int64{10, bucketMost, math.MaxInt64} {
		for _, shadow := range []bool{false, true} {
			for seed := range uint64(soak.Amount(2, 100)) {
				b := newModelServers(t, seed, limitsOfAllKinds(capacity, shadow), amounts)
				b.played = append(b.played,
					fmt.Sprintf("capacity %d, shadow %t, seed %d", capacity, shadow, seed))
				for range 300 {
					b.step()
				}
				for what, n := range b.outcomes {
					seen[what] += n
				}
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{
		"done", "denied", string(weir.Invalid), string(weir.NeverSatisfiable), string(weir.Conflict),
		string(weir.Ended), string(weir.UnknownLease),
	} {
		if seen[what] == 0 {
			t.Errorf("nothing was answered with %q", what)
		}
	}
}
