//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// lossyWire is the connection of one server of a together to the cluster. Its clock is the
// cluster's, so that the server agrees with the model to the millisecond.
type lossyWire struct {
	*emulator.Emulator

	mu     sync.Mutex
	random *rand.Rand
	// lossy is the percentage of calls that get no answer; half of those are not carried out.
	lossy int
	lost  atomic.Int64
}

func (w *lossyWire) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	fate := 100
	if w.lossy > 0 {
		w.mu.Lock()
		fate = w.random.IntN(100)
		w.mu.Unlock()
	}
	if fate < w.lossy/2 {
		w.lost.Add(1)
		return nil, errors.New("the call was lost")
	}
	results, err := w.Emulator.CreateTransfers(ctx, transfers)
	if fate < w.lossy {
		w.lost.Add(1)
		return nil, errors.New("the answer was lost")
	}
	return results, err
}

func (*lossyWire) Close() error { return nil }

// updateServers is three servers that update the same leases, and the model of a single one that
// does.
type updateServers struct {
	*testing.T
	*rand.Rand

	clock   worldClock
	ledger  *emulator.Emulator
	servers []*limiter.Limiter
	wires   []*lossyWire
	only    conformance.ModelWorld
	leases  []*sharedLease
	history []string
	counts  map[string]int
}

// sharedLease is a lease that all three servers update.
type sharedLease struct {
	request *weir.Request
	seq     int64
	// ends are the actuals that it was completed with.
	ends [][]weir.Costs
	// ended is 1 once the model has completed or cancelled it.
	ended int
	// latest is the sequence number of the last of the concurrent adjusts; unlike makes their actuals
	// differ.
	latest, unlike int64
}

func updateServersLimits() *weir.Definitions {
	d := fourLimits(1000)
	d.System[0].RefillAmount, d.System[0].RefillPeriod = 10, time.Second
	d.System[2].Timeout, d.System[3].Window = 2*time.Minute, time.Minute
	d.Entities = map[string]weir.EntityDefinition{"p": {}, "e": {Parent: "p", Cascade: true}}
	return d
}

func newUpdateServers(t *testing.T, seed uint64, lossy int) *updateServers {
	t.Helper()
	g := &updateServers{T: t, Rand: rand.New(rand.NewPCG(seed, 3)), counts: make(map[string]int)}
	g.clock.to(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	g.ledger = emulator.New(&emulator.Options{Now: g.clock.now, Tick: time.Millisecond})
	for i := range 3 {
		w := &lossyWire{Emulator: g.ledger, random: rand.New(rand.NewPCG(seed, uint64(i)))}
		s, err := OpenLedger(t.Context(), w, &Options{
			Definitions: updateServersLimits(), Poll: -1, Now: g.clock.now,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{Now: g.clock.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		w.lossy = lossy
		g.servers, g.wires = append(g.servers, l), append(g.wires, w)
	}
	var err error
	g.only, err = conformance.OpenModel(conformance.Setup{
		Start: g.clock.now(), Definitions: updateServersLimits(),
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// note adds a line to the history that is printed if the test fails.
func (g *updateServers) note(format string, args ...any) {
	g.history = append(g.history, fmt.Sprintf(format, args...))
}

func (g *updateServers) wrong(format string, args ...any) {
	g.Helper()
	g.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(g.history, "\n"))
}

// pass lets whole seconds pass, so that units that are taken again end when they would have.
func (g *updateServers) pass(d time.Duration) {
	g.clock.to(g.clock.now().Add(d))
	g.only.Advance(d)
	g.note("%s passes", d)
}

func (g *updateServers) costs(most int64) weir.Costs {
	c := weir.Costs{}
	for _, name := range []string{"b", "m", "w"} {
		if g.IntN(3) > 0 {
			c[name] = g.Int64N(most + 1)
		}
	}
	return c
}

// reserve reserves a lease on one server, with one charge or two on one entity.
func (g *updateServers) reserve() {
	r := &weir.Request{LeaseID: weir.NewLeaseID(g.clock.now())}
	for range 1 + g.IntN(2) {
		c := g.costs(6)
		c["s"] = g.Int64N(3)
		c["w"] += 0
		r.Charges = append(r.Charges, weir.Charge{Entity: "e", Resource: "r", Costs: c})
	}
	g.leases = append(g.leases, &sharedLease{request: r})
	g.note("reserve %s %v", r.LeaseID, r.Charges)
	g.do("reserve", func(l weir.Service) error {
		_, err := l.Reserve(g.Context(), r)
		return err
	})
}

// totals returns totals of some of the limits of a lease, for each charge or for the only one.
func (g *updateServers) totals(x *sharedLease) []weir.Costs {
	var out []weir.Costs
	for _, charge := range x.request.Charges {
		c := g.costs(9)
		for name := range c {
			if _, ok := charge.Costs[name]; !ok {
				delete(c, name)
			}
		}
		if g.IntN(4) == 0 {
			c["s"] = g.Int64N(charge.Costs["s"] + 1)
		}
		out = append(out, c)
	}
	return out
}

// settle makes an update of a lease of all servers.
func (g *updateServers) settle() {
	x := g.leases[g.IntN(len(g.leases))]
	id := x.request.LeaseID
	switch n := g.IntN(20); {
	case n < 10:
		seq := x.seq + 1
		if g.IntN(4) == 0 {
			seq = max(1, seq+g.Int64N(6)-4) // earlier, or with a gap
		}
		totals, what := g.totals(x), "adjust"
		if seq <= x.seq {
			what = "earlier adjust"
		}
		g.note("adjust %s %d %v", id, seq, totals)
		x.seq = max(x.seq, seq)
		g.do(what, func(l weir.Service) error {
			return last(l.Adjust(g.Context(), id, seq, totals))
		})
	case n < 15:
		g.note("extend %s", id)
		g.do("extend", func(l weir.Service) error { return last(l.Extend(g.Context(), id)) })
	case n < 17:
		g.note("reserve %s again", id)
		g.do("reserve again", func(l weir.Service) error {
			_, err := l.Reserve(g.Context(), x.request)
			return err
		})
	case n < 19:
		totals := g.totals(x)
		if len(x.ends) > 0 && g.IntN(2) == 0 {
			totals = x.ends[g.IntN(len(x.ends))]
		}
		for _, c := range totals {
			// All slots return, whatever is named; a server that knows of more than there are
			// accepts it.
			delete(c, "s")
		}
		x.ends = append(x.ends, totals)
		g.note("complete %s %v", id, totals)
		if g.do("complete", func(l weir.Service) error {
			return last(l.Complete(g.Context(), id, totals))
		}) == "" {
			x.ended = 1
		}
	default:
		g.note("cancel %s", id)
		if g.do("cancel", func(l weir.Service) error {
			return last(l.Cancel(g.Context(), id))
		}) == "" {
			x.ended = 1
		}
	}
}

// do makes a call on a server, repeats it on others as often as the answer is lost, and then makes
// it on the model, whose answer it returns.
func (g *updateServers) do(what string, do func(l weir.Service) error) string {
	g.Helper()
	var got error
	for try := 0; try == 0 || errors.Is(got, weir.Unavailable); try++ {
		if try == 100 {
			g.wrong("%s: %v", what, got)
		}
		i := g.IntN(len(g.servers))
		got = do(g.servers[i])
		g.note("  on %d: %v", i, got)
		if try > 0 {
			g.counts["again"]++
		}
	}
	want := do(g.only)
	is, should := codeOfError(got), codeOfError(want)
	g.counts[what+" "+should]++
	ends := should == string(weir.Ended) || should == string(weir.Conflict)
	switch {
	case is == should:
	case is == string(weir.Invalid) && (ends || what == "earlier adjust"):
		// It names more slots than this server knows of, so this server may refuse it without
		// asking.
		g.counts["invalid, not "+should]++
	case should == string(weir.UnknownLease),
		what == "reserve again" && should == string(weir.Invalid):
		// Servers that did not learn of the end remember the lease for longer. Nothing changes.
		g.counts["remembered, not "+should]++
	case is == "" && ends && (what == "earlier adjust" || what == "reserve again"):
		// A server repeats an earlier answer without asking whether the lease is still live.
		g.counts[what+" answered, not "+should]++
	default:
		g.wrong("%s: got %v, the model %v", what, got, want)
	}
	return should
}

func codeOfError(err error) string {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return string(e.Code)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// same compares what is in use on one of the servers with the model.
func (g *updateServers) same() {
	g.Helper()
	for _, entity := range []string{"e", "p"} {
		i := g.IntN(len(g.servers))
		is, err := g.servers[i].Status(g.Context(), entity, "r")
		should, errModel := g.only.Status(g.Context(), entity, "r")
		if err != nil || errModel != nil {
			g.wrong("status: %v, the model %v", err, errModel)
		}
		for k := range should {
			if is[k].Available != should[k].Available {
				g.wrong("%s %s: %d available, the model has %d",
					entity, should[k].Limit, is[k].Available, should[k].Available)
			}
		}
	}
}

// atRest checks the ledger after everything has timed out: each lease has ended at most once, and
// nothing is held.
func (g *updateServers) atRest() {
	g.Helper()
	ends := make(map[tb.Uint128]int)
	for _, t := range g.ledger.Contents().Transfers {
		switch {
		case t.UserData32&endMark != 0:
			ends[t.UserData128]++
		case t.Pending && t.Code >= codeCheck:
			g.wrong("a hold of %s is still pending", leaseOf(t.UserData128))
		}
	}
	for _, x := range g.leases {
		if n := ends[leaseNumber(x.request.LeaseID)]; n != x.ended {
			g.wrong("%s has ended %d times, the model's %d", x.request.LeaseID, n, x.ended)
		}
	}
	g.counts["ends"] += len(ends)
	for _, a := range g.ledger.Contents().Accounts {
		if a.Code >= codeBucket && lowUint64(a.DebitsPending) != 0 {
			g.wrong("%d are pending on an account of code %d", lowUint64(a.DebitsPending), a.Code)
		}
	}
}

// TestServersUpdateSameLeases has three servers update the same leases, and loses some calls and
// answers. Each server answers as a single one would: as the model does, with as much in use after
// every call.
func TestServersUpdateSameLeases(t *testing.T) {
	t.Parallel()
	counts := make(map[string]int)
	for seed := range uint64(soak.Amount(12, 2000)) {
		g := newUpdateServers(t, seed, []int{0, 30}[seed%2])
		g.counts = counts
		for range 150 {
			switch n := g.IntN(20); {
			case len(g.leases) == 0 || n == 0:
				g.reserve()
			case n < 4:
				g.pass(time.Duration(1+g.IntN(30)) * time.Second)
			case n == 4 && g.IntN(8) == 0:
				g.pass(time.Duration(g.IntN(70)) * time.Minute)
			default:
				g.settle()
			}
			g.same()
		}
		for _, w := range g.wires {
			counts["lost"] += int(w.lost.Load())
		}
		g.pass(3 * time.Hour)
		g.same()
		g.atRest()
	}
	t.Log(counts)
}
