//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// usageNet is a server's way to the cluster. It counts the transfers of usage.
type usageNet struct {
	Ledger

	// loses loses the answer to the next call that creates; losesUsage does so for usage only.
	loses, losesUsage atomic.Bool
	// stuck lets calls that create wait until their contexts end.
	stuck atomic.Bool
	// newIDs gives transfers of usage new IDs whenever they are sent, as a wrong store would.
	newIDs bool
	// calls and records count the calls that write usage, and their transfers.
	calls, records atomic.Int64
}

func (*usageNet) Close() error { return nil }

func (n *usageNet) CreateTransfers(
	ctx context.Context, all []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	if n.stuck.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	loses := n.loses.Swap(false)
	if all[0].Code == codeUsage || all[0].Code == codeOverdrawn {
		n.calls.Add(1)
		n.records.Add(int64(len(all)))
		loses = n.losesUsage.Swap(false)
		if n.newIDs {
			all = slices.Clone(all)
			for i := range all {
				all[i].ID = tb.ID()
			}
		}
	}
	results, err := n.Ledger.CreateTransfers(ctx, all)
	if loses {
		return nil, errors.New("the answer was lost")
	}
	return results, err
}

// tallyKey identifies a limit in an hour.
type tallyKey struct {
	entity, resource, limit string
	hour                    int64
}

// tally is what was used, in units and in changes.
type tally map[tallyKey][2]int64

func (y tally) add(o tally) {
	for k, v := range o {
		y[k] = [2]int64{y[k][0] + v[0], y[k][1] + v[1]}
	}
}

// tallied is a server, and what its callers used after its last write.
type tallied struct {
	*limiter.Limiter

	store *Store
	net   *usageNet
	since tally
}

// talliedLease is a live lease as the test knows it.
type talliedLease struct {
	request weir.Request
	costs   weir.Costs
	seq     int64
}

// usageScene makes calls on servers of one cluster and keeps a tally of what they use by rules of
// its own.
type usageScene struct {
	t       *testing.T
	random  *rand.Rand
	ledger  Ledger
	name    string
	now     func() time.Time
	pass    func(time.Duration)
	newIDs  bool
	d       *weir.Definitions
	servers []*tallied
	leases  []*talliedLease
	// written is what has been written, lost what servers that were killed had not written.
	written, lost tally
	outcomes      map[string]int
}

func newUsageScene(t *testing.T, seed uint64) *usageScene {
	t.Helper()
	c := newCluster(t, 0)
	return &usageScene{
		t: t, random: rand.New(rand.NewPCG(seed, 3)), ledger: c.ledger, now: c.clock.now, pass: c.pass,
		d: usageLimits(), written: tally{}, lost: tally{}, outcomes: map[string]int{},
	}
}

// usageLimits has a limit of each kind, one of them a shadow limit, and a child that cascades.
func usageLimits() *weir.Definitions {
	d := fourLimits(2000)
	d.System[0].RefillPeriod = time.Minute
	d.System = append(d.System, weir.Limit{
		Name: "x", Kind: weir.Bucket, Capacity: 10, RefillAmount: 1, RefillPeriod: time.Second,
		Shadow: true,
	})
	d.Entities = map[string]weir.EntityDefinition{
		"parent": {}, "child": {Parent: "parent", Cascade: true},
	}
	return d
}

// open starts a server.
func (u *usageScene) open(write time.Duration) *tallied {
	u.t.Helper()
	net := &usageNet{Ledger: u.ledger, newIDs: u.newIDs}
	s, err := OpenLedger(u.t.Context(), net, &Options{
		Definitions: u.d, Namespace: u.name, Poll: -1, Now: u.now, WriteUsage: write,
	})
	if err != nil {
		u.t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: u.now, CacheTTL: -1, StoreTimeout: time.Minute})
	if err != nil {
		u.t.Fatal(err)
	}
	return &tallied{l, s, net, tally{}}
}

// wrote records that a server has written all that its callers used.
func (u *usageScene) wrote(m *tallied) {
	u.written.add(m.since)
	m.since = tally{}
}

// note adds a change on an entity, and on its parent, to the tally of a server.
func (u *usageScene) note(m *tallied, r *weir.Request, limit string, units int64) {
	if units == 0 {
		return
	}
	for _, entity := range []string{r.Entity, u.d.Entities[r.Entity].Parent} {
		if entity != "" {
			k := tallyKey{entity, r.Resource, limit, u.now().Unix() / 3600}
			m.since.add(tally{k: {units, 1}})
		}
	}
}

// repeat makes a call, and once more if its answer was lost.
func (u *usageScene) repeat(m *tallied, what string, call func() error) bool {
	u.t.Helper()
	loses := u.random.IntN(20) == 0
	m.net.loses.Store(loses)
	err := call()
	if loses && errors.Is(err, weir.Unavailable) {
		u.outcomes["answer lost"]++
		err = call()
	}
	m.net.loses.Store(false)
	u.outcomes[what+" "+describeAnswer(err)]++
	over := errors.Is(err, weir.Ended) || errors.Is(err, weir.UnknownLease) ||
		what == "reserve again" && errors.Is(err, weir.Invalid) // its ID is too old
	if err != nil && !denied(err) && !over {
		u.t.Fatalf("%s: %v", what, err)
	}
	return err == nil
}

func (u *usageScene) reserve(m *tallied) {
	u.t.Helper()
	r := weir.Request{
		LeaseID:  weir.NewLeaseID(u.now()),
		Entity:   []string{"child", "parent", "solo"}[u.random.IntN(3)],
		Resource: []string{"r", "other"}[u.random.IntN(2)], Costs: weir.Costs{},
	}
	for _, l := range u.d.System {
		if u.random.IntN(2) == 0 {
			r.Costs[l.Name] = u.random.Int64N(60)
		}
	}
	if _, ok := r.Costs["s"]; !ok { // the limiter adds the slot
		defer func() { delete(r.Costs, "s") }()
		if len(r.Costs) == 0 {
			r.Costs["b"] = 1
		}
	}
	if !u.repeat(m, "reserve", func() error { _, err := m.Reserve(u.t.Context(), &r); return err }) {
		return
	}
	l := &talliedLease{request: r, costs: maps.Clone(r.Costs)}
	if _, ok := l.costs["s"]; !ok {
		l.costs["s"] = 1
	}
	u.leases = append(u.leases, l)
	for limit, n := range l.costs {
		u.note(m, &r, limit, n)
	}
}

// update adjusts, completes, cancels, extends or repeats a lease on any server.
func (u *usageScene) update(m *tallied) {
	u.t.Helper()
	if len(u.leases) == 0 {
		return
	}
	at := u.random.IntN(len(u.leases))
	l := u.leases[at]
	ctx, id := u.t.Context(), l.request.LeaseID
	named := weir.Costs{}
	for limit, held := range l.costs {
		if u.random.IntN(2) == 0 {
			most := int64(80)
			if limit == "s" {
				most = held + 1
			}
			named[limit] = u.random.Int64N(max(most, 1))
		}
	}
	set := func() {
		for limit, n := range named {
			u.note(m, &l.request, limit, n-l.costs[limit])
			l.costs[limit] = n
		}
	}
	ended := true
	switch u.random.IntN(6) {
	case 0, 1:
		ended = false
		l.seq++
		if u.repeat(m, "adjust", func() error {
			_, err := m.Adjust(ctx, id, l.seq, []weir.Costs{named})
			return err
		}) {
			set()
		}
	case 2:
		if u.repeat(m, "cancel", func() error { _, err := m.Cancel(ctx, id); return err }) {
			for limit, n := range l.costs {
				u.note(m, &l.request, limit, -n)
			}
		}
	case 3:
		ended = false
		u.repeat(m, "extend", func() error { _, err := m.Extend(ctx, id); return err })
	case 4:
		ended = false
		u.repeat(m, "reserve again", func() error { _, err := m.Reserve(ctx, &l.request); return err })
	default:
		if u.repeat(m, "complete", func() error {
			_, err := m.Complete(ctx, id, []weir.Costs{named})
			return err
		}) {
			set()
		}
	}
	if ended {
		u.leases = slices.Delete(u.leases, at, at+1)
	}
}

// write writes the usage of a server, at times with an answer that is lost. What waits for that
// answer is written.
func (u *usageScene) write(m *tallied) {
	u.t.Helper()
	loses := u.random.IntN(3) == 0
	m.net.losesUsage.Store(loses)
	err := m.store.writeUsage(u.t.Context())
	if m.net.losesUsage.Swap(false) != loses { // an answer was lost
		u.outcomes["write lost"]++
		err = m.store.writeUsage(u.t.Context())
	}
	if err != nil {
		u.t.Fatal(err)
	}
	u.wrote(m)
}

// end closes a server or kills it.
func (u *usageScene) end(m *tallied, killed bool) {
	u.t.Helper()
	if killed {
		u.lost.add(m.since)
		return
	}
	if err := m.Close(); err != nil {
		u.t.Fatal(err)
	}
	u.wrote(m)
}

// play makes random calls on two servers, either of which is replaced at times.
func (u *usageScene) play(steps int, kills bool) {
	u.t.Helper()
	u.servers = []*tallied{u.open(-1), u.open(-1)}
	for range steps {
		at := u.random.IntN(len(u.servers))
		m := u.servers[at]
		u.pass(time.Duration(u.random.IntN(20_000)) * time.Millisecond)
		switch n := u.random.IntN(100); {
		case n < 40:
			u.reserve(m)
		case n < 90:
			u.update(m)
		case n < 98:
			u.write(m)
		default:
			u.end(m, kills && n == 99)
			u.servers[at] = u.open(-1)
		}
	}
	for _, m := range u.servers {
		u.end(m, kills)
	}
}

// read returns the tally of what a new server reads of some resources, by pages of a few records.
// It knows a resource only if the query names it.
func (u *usageScene) read(q weir.UsageQuery, resources ...string) tally {
	u.t.Helper()
	m := u.open(-1)
	defer func() { _ = m.Close() }()
	got := tally{}
	for _, q.Entity = range []string{"child", "parent", "solo"} {
		for _, q.Resource = range resources {
			u.readPages(m, q, got)
		}
	}
	return got
}

// readPages adds the pages of one list to a tally, and checks their order.
func (u *usageScene) readPages(m *tallied, q weir.UsageQuery, got tally) {
	u.t.Helper()
	last := weir.Usage{}
	for q.Size = 1 + u.random.IntN(10); ; {
		page, err := m.Usage(u.t.Context(), &q)
		if err != nil {
			u.t.Fatal(err)
		}
		for i := range page.Usage {
			r := &page.Usage[i]
			if driver.CompareUsage(&q, &last, r) >= 0 {
				u.t.Errorf("%+v comes after %+v", r, last)
			}
			last = *r
			for limit, units := range r.Units {
				got.add(tally{{r.Entity, r.Resource, limit, r.Start.Unix() / 3600}: {units, 0}})
			}
			// The events are those of all limits together.
			got.add(tally{{r.Entity, r.Resource, "", r.Start.Unix() / 3600}: {0, r.Events}})
		}
		if q.After = page.Next; q.After == "" {
			return
		}
	}
}

// hours returns the tally with the events of each hour together, and without hours that have only
// zeros.
func (y tally) hours(window weir.UsageWindow) tally {
	out := tally{}
	for k, v := range y {
		k.hour = window.Start(time.Unix(k.hour*3600, 0)).Unix() / 3600
		all := k
		all.limit = ""
		out.add(tally{k: {v[0], 0}, all: {0, v[1]}})
	}
	maps.DeleteFunc(out, func(_ tallyKey, v [2]int64) bool { return v == [2]int64{} })
	return out
}

// differences returns the keys at which two tallies differ, as text.
func (y tally) differences(o tally) []string {
	var out []string
	for k, v := range y {
		if o[k] != v {
			out = append(out, fmt.Sprintf("%+v: %v, want %v", k, v, o[k]))
		}
	}
	for k, v := range o {
		if _, ok := y[k]; !ok {
			out = append(out, fmt.Sprintf("%+v: nothing, want %v", k, v))
		}
	}
	slices.Sort(out)
	return out
}
