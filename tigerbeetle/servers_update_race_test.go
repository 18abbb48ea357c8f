//go:build cgo

package tigerbeetle

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
)

// concurrentUpdate is an update that is in flight beside others.
type concurrentUpdate struct {
	on     *sharedLease
	verb   weir.Verb
	seq    int64
	totals []weir.Costs
	// hops are the servers that the update is sent to, until one answers.
	hops []int
	err  error
}

func (r *concurrentUpdate) do(g *updateServers, l weir.Service) error {
	id := r.on.request.LeaseID
	switch r.verb {
	case weir.VerbAdjust:
		return last(l.Adjust(g.Context(), id, r.seq, r.totals))
	case weir.VerbExtend:
		return last(l.Extend(g.Context(), id))
	case weir.VerbComplete:
		return last(l.Complete(g.Context(), id, r.totals))
	}
	return last(l.Cancel(g.Context(), id))
}

// races returns n updates of a few leases. Each adjust of a lease has its own sequence number, and
// each complete its own actuals.
func (g *updateServers) races(n int) []*concurrentUpdate {
	out := make([]*concurrentUpdate, n)
	for i := range out {
		x := g.leases[len(g.leases)-1-g.IntN(min(3, len(g.leases)))]
		r := &concurrentUpdate{on: x, totals: g.totals(x)}
		switch k := g.IntN(20); {
		case k < 12:
			r.verb = weir.VerbAdjust
			x.seq += 1 + g.Int64N(2)
			r.seq = x.seq
		case k < 16:
			r.verb = weir.VerbExtend
		case k < 19:
			r.verb = weir.VerbComplete
			for j, c := range r.totals {
				delete(c, "s")
				if _, ok := x.request.Charges[j].Costs["w"]; ok {
					x.unlike++
					c["w"] = x.unlike
				}
			}
		default:
			r.verb = weir.VerbCancel
		}
		for range 200 {
			r.hops = append(r.hops, g.IntN(len(g.servers)))
		}
		out[i] = r
	}
	g.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// run sends updates concurrently, each until it is answered.
func (g *updateServers) run(races []*concurrentUpdate) {
	var all sync.WaitGroup
	for _, r := range races {
		all.Go(func() {
			for _, hop := range r.hops {
				if r.err = r.do(g, g.servers[hop]); !errors.Is(r.err, weir.Unavailable) {
					return
				}
			}
		})
	}
	all.Wait()
	for _, r := range races {
		g.note("%s %s %d %v: %v", r.verb, r.on.request.LeaseID, r.seq, r.totals, r.err)
		g.counts[string(r.verb)+" "+codeOfError(r.err)]++
	}
}

// applied returns the updates that the ledger has applied from a place in its log on, in its order.
func (g *updateServers) applied(races []*concurrentUpdate, from int) []*concurrentUpdate {
	var out []*concurrentUpdate
	for _, t := range g.ledger.Contents().Transfers[from:] {
		header := t.Code == codeAdjusted || t.Code == codeExtended
		verb, seq := weir.VerbCancel, int64(0)
		switch {
		case t.UserData32&endMark != 0 && t.Flags&flagPost != 0:
			verb = weir.VerbComplete
		case t.UserData32&endMark != 0:
		case header && t.Flags&flagPending != 0 && t.Code == codeAdjusted:
			verb, seq = weir.VerbAdjust, int64(lowUint64(t.Amount))
		case header && t.Flags&flagPending != 0:
			verb = weir.VerbExtend
		default:
			continue
		}
		found := false
		for _, r := range races {
			id := leaseNumber(r.on.request.LeaseID)
			mine := id == t.UserData128 && r.verb == verb && r.seq == seq
			if mine && (verb != weir.VerbComplete || r.err == nil) {
				out, found = append(out, r), true
				break
			}
		}
		if !found {
			g.wrong("%s %s %d is on the ledger, and nobody was told",
				verb, leaseOf(t.UserData128), seq)
		}
	}
	return out
}

// judge applies the updates to the model in the ledger's order, and compares the answers.
func (g *updateServers) judge(races, applied []*concurrentUpdate) {
	done := make(map[*concurrentUpdate]bool)
	latest := make(map[*sharedLease]int64)
	for _, r := range applied {
		if r.verb == weir.VerbAdjust && r.seq <= latest[r.on] {
			g.wrong("adjust %d was applied after %d", r.seq, latest[r.on])
		}
		latest[r.on] = max(latest[r.on], r.seq)
		if err := r.do(g, g.only); err != nil {
			g.wrong("%s %d was applied, and the model says %v", r.verb, r.seq, err)
		}
		done[r] = true
		if r.verb == weir.VerbComplete || r.verb == weir.VerbCancel {
			r.on.ended++
		}
	}
	for _, r := range races {
		switch code := codeOfError(r.err); {
		case code == "" && r.verb == weir.VerbAdjust && !done[r]:
			if r.seq > latest[r.on] && r.seq > r.on.latest {
				g.wrong("adjust %d is said to be done, and is not", r.seq)
			}
			g.counts["adjust overtaken"]++
		case code == "" && r.verb == weir.VerbComplete && !done[r]:
			g.wrong("a complete is said to be done, and is not")
		case code == string(weir.Invalid) && done[r]:
			// Its answer was lost, and fewer slots are left now than it asked for.
			if g.wires[0].lossy == 0 || latest[r.on] == r.seq {
				g.wrong("%s %d is said to be invalid, and was done", r.verb, r.seq)
			}
			g.counts["adjust done and overtaken, then invalid"]++
		case code == string(weir.Ended) || code == string(weir.Conflict):
			if r.on.ended == 0 {
				g.wrong("%s: %v, of a lease that lives", r.verb, r.err)
			}
		case code != "" && code != string(weir.Invalid):
			g.wrong("%s: %v", r.verb, r.err)
		}
	}
	for x, seq := range latest {
		x.latest = max(x.latest, seq)
	}
}

// TestServersUpdateSameLeasesConcurrently has callers on three servers update a few leases at the
// same time, and loses some calls and answers. The updates that the ledger applied, in its order,
// are ones that the model allows, they lead to what is in use, and every answer fits them.
func TestServersUpdateSameLeasesConcurrently(t *testing.T) {
	t.Parallel()
	counts := make(map[string]int)
	for seed := range uint64(soak.Amount(10, 2000)) {
		g := newUpdateServers(t, seed, []int{0, 20}[seed%2])
		g.counts = counts
		for range 8 {
			for range 1 + g.IntN(2) {
				g.reserve()
			}
			from := len(g.ledger.Contents().Transfers)
			races := g.races(2 + g.IntN(14))
			g.run(races)
			g.judge(races, g.applied(races, from))
			g.same()
			g.pass(time.Duration(1+g.IntN(50)) * time.Second)
			g.same()
		}
		g.pass(3 * time.Hour)
		g.same()
		g.atRest()
	}
	t.Log(counts)
}
