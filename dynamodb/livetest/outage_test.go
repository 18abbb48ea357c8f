package livetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// outage is a run with servers that are killed.
type outage struct {
	name              string
	entities, servers int
	kills             int
	pythons           int    // the number of Python processes on the same table
	parent            bool   // the entities have a parent, to which they cascade
	spare             bool   // the servers are not killed
	query             string // is added to the URL of the store
	fails             bool   // the checks must fail
}

// These are the sums of all entities: their capacity, their refill in a second, and the callers.
const (
	outageCapacity = 2400
	outageCallers  = 16
)

// outageRefill is low in a plain run, so that the callers ask for more even on a busy machine.
func outageRefill() int64 { return int64(soak.Amount(80, 300)) }

// outageRun is an outage with its data.
type outageRun struct {
	*fleet
	outage

	servers *servers
	fresh   []weir.Service // the servers after the load
	log     *Log
	callers []*caller
	wrong   complaints
	denied  atomic.Int64 // denials of the callers
	// settledMilli is the change of what the callers consumed while the fresh servers settled leases,
	// by entity and limit, in milli-units.
	settledMilli map[string]map[string]int64
	before       []Item // the items before that
	drainedFrom  int64  // when all leases were settled, in Unix microseconds
}

// playOutage runs an outage. After the load, every lease must be known to new servers.
func playOutage(t *testing.T, s outage, program string, seed uint64) *outageRun {
	t.Helper()
	r := &outageRun{outage: s, fleet: &fleet{t: t, local: testkit.DynamoDB(t), dir: t.ArtifactDir()}}
	within := beginWithin + endWithin + time.Duration(s.kills)*(killEvery+time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r.prepareOutage(ctx)
	r.startServers(ctx, program, seed)
	r.load(ctx, seed)
	r.replace(ctx)
	r.settleAll(ctx)
	r.drain(ctx)
	r.world.EndUS = micros()
	r.log.Add(&Record{Kind: End})
	if err := r.log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.logs() {
		records, err := ReadRecords(name)
		if err != nil {
			t.Fatal(err)
		}
		r.records = append(r.records, records...)
	}
	r.read(ctx)
	return r
}

// prepareOutage makes a table with the limits of all entities.
func (r *outageRun) prepareOutage(ctx context.Context) {
	r.t.Helper()
	r.offer = offer(1)
	r.offer.Endpoint, r.offer.Table = r.local.Endpoint(), r.local.Table(r.t, nil)
	r.offer.Process, r.offer.Log = SideGo, filepath.Join(r.dir, r.outage.name+"-callers.jsonl")
	config := r.local.Config()
	table := &dynamodb.Table{
		Name: r.offer.Table, NoStream: true, Options: &dynamodb.Options{Config: &config},
	}
	if _, err := table.Create(ctx); err != nil {
		r.t.Fatal(err)
	}
	r.world = World{
		Resource: r.offer.Resource, Limits: make(map[string]map[string]Limit),
		RefundUS: refundWithin.Microseconds(),
	}
	lim := r.openWeir(ctx)
	if r.parent {
		r.setLimits(ctx, lim, team, 1)
		r.world.Parents = make(map[string]string)
		if err := lim.SetEntity(ctx, team, "", false); err != nil {
			r.t.Fatal(err)
		}
	}
	for i := range r.entities {
		entity := team + strconv.Itoa(i)
		r.offer.Entities = append(r.offer.Entities, entity)
		n := r.entities
		if r.parent { // together the children have more than their parent
			n = max(1, n/2)
			r.world.Parents[entity] = team
			if err := lim.SetEntity(ctx, entity, team, true); err != nil {
				r.t.Fatal(err)
			}
		}
		r.setLimits(ctx, lim, entity, int64(n))
	}
	var err error
	if r.log, err = NewLog(r.offer.Process, r.offer.Log); err != nil {
		r.t.Fatal(err)
	}
}

// setLimits gives an entity one part of n of all units.
func (r *outageRun) setLimits(ctx context.Context, lim *limiter.Limiter, entity string, n int64) {
	r.t.Helper()
	r.world.Limits[entity] = map[string]Limit{
		scarceLimit: {Capacity: outageCapacity / n, Refill: outageRefill() / n, PeriodS: 1},
		slowLimit:   slowest,
	}
	var limits []weir.Limit
	for name, l := range r.world.Limits[entity] {
		limits = append(limits, weir.Limit{
			Name: name, Kind: weir.Bucket, Capacity: l.Capacity, RefillAmount: l.Refill,
			RefillPeriod: time.Duration(l.PeriodS) * time.Second,
		})
	}
	at := weir.Subject{Entity: entity, Resource: r.offer.Resource}
	if err := lim.SetLimits(ctx, at, limits); err != nil {
		r.t.Fatal(err)
	}
}

// refundWithin is the longest time from the answer of one server until another one that got the
// same settlement has written its refund.
const refundWithin = 2 * time.Second

// startServers starts the servers, the proxy, the callers and the Python processes.
func (r *outageRun) startServers(ctx context.Context, program string, seed uint64) {
	r.t.Helper()
	p, url := startProxy(r.t, r.outage.servers, seed)
	p.cascades = r.parent
	r.servers = &servers{
		program: program, environ: r.local.Environment(), proxy: p,
		store: "dynamodb://" + r.offer.Table + "?region=us-east-1&endpoint=" + r.local.Endpoint() +
			r.query,
		running: make([]*server, r.outage.servers), lives: make([]int, r.outage.servers),
	}
	for i := range r.outage.servers {
		if err := r.servers.start(ctx, r.t, i); err != nil {
			r.t.Fatal(err)
		}
	}
	for i := range outageCallers {
		r.callers = append(r.callers, &caller{
			service: client(r.t, url), offer: &r.offer, log: r.log, wrong: &r.wrong, denied: &r.denied,
			random: rand.New(rand.NewPCG(seed, uint64(100+i))),
		})
	}
	if r.pythons == 0 {
		return
	}
	r.venv = testkit.ZAE(r.t)
	r.offer.Rate, r.offer.Seconds = 20, r.kills
	for i := range r.pythons {
		r.begin(ctx, SidePython, i)
	}
	for _, m := range r.processes {
		if _, err := m.process.WaitLine(ctx, regexp.MustCompile(`^ready$`)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// load makes the calls while servers are killed. It returns when no request is under way.
func (r *outageRun) load(ctx context.Context, seed uint64) {
	r.t.Helper()
	r.world.StartUS = micros()
	for _, m := range r.processes {
		if _, err := fmt.Fprintln(m.input, r.world.StartUS); err != nil {
			r.t.Fatalf("%s: %v: %s", m.spec.Process, err, m.process.Output())
		}
	}
	stop := make(chan struct{})
	var calling sync.WaitGroup
	for _, c := range r.callers {
		calling.Go(func() { c.run(ctx, stop) })
	}
	err := r.servers.killAtRandom(ctx, r.t, &r.outage, seed)
	for last := micros() + longerUS; r.denied.Load() < enoughDenied && micros() < last && err == nil; {
		err = until(ctx, micros()+pollUS)
	}
	close(stop)
	calling.Wait()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		r.t.Fatal(err)
	}
	r.servers.proxy.sending.Wait()
	for _, m := range r.processes {
		if err := m.process.Wait(ctx); err != nil {
			r.t.Fatalf("%s: %v: %s", m.spec.Process, err, m.process.Output())
		}
	}
}

const (
	// After the last kill the load lasts until there are enoughDenied denials, or for longerUS
	// microseconds. pollUS is the time between two looks at the number of denials.
	enoughDenied = 20
	longerUS     = 20_000_000
	pollUS       = 20_000
)

// logs returns the logs of all callers.
func (r *outageRun) logs() []string {
	names := []string{r.offer.Log}
	for _, m := range r.processes {
		names = append(names, m.spec.Log)
	}
	return names
}

// replace kills all servers and starts two new ones.
func (r *outageRun) replace(ctx context.Context) {
	r.t.Helper()
	for i, one := range r.servers.running {
		if r.spare {
			r.fresh = append(r.fresh, client(r.t, one.url))
			continue
		}
		if err := r.servers.kill(ctx, i); err != nil {
			r.t.Fatal(err)
		}
	}
	for len(r.fresh) < 2 && !r.spare {
		one, err := r.servers.startServer(ctx, r.t)
		if err != nil {
			r.t.Fatal(err)
		}
		r.fresh = append(r.fresh, client(r.t, one.url))
	}
}

// settleAll ends each lease that is live on one of the new servers and repeats that on the others,
// and repeats what callers did with ended leases.
func (r *outageRun) settleAll(ctx context.Context) {
	r.t.Helper()
	r.read(ctx)
	r.before, r.settledMilli = r.items, make(map[string]map[string]int64)
	for _, e := range r.someEndings() {
		r.again(ctx, &e)
	}
	ways := []string{Keep, Up, Down, Cancel}
	for _, c := range r.callers {
		for i, o := range c.open {
			stood := o.record.totals()
			totals := totalsOf(o.record.Costs, ways[i%len(ways)], r.offer.AdjustPercent)
			done := len(c.ended)
			c.end(ctx, r.fresh[i%len(r.fresh)], o, ways[i%len(ways)], totals)
			r.log.Add(o.record)
			for name, units := range totals {
				r.change(o.record.Entity, name, (units-stood[name])*milli)
			}
			for _, e := range c.ended[done:] {
				r.again(ctx, &e)
			}
		}
	}
}

// change notes that the callers changed what they consumed of an entity's limit, and of its
// parent's.
func (r *outageRun) change(entity, limit string, by int64) {
	for _, of := range []string{entity, r.world.Parents[entity]} {
		if r.settledMilli[of] == nil {
			r.settledMilli[of] = make(map[string]int64)
		}
		r.settledMilli[of][limit] += by
	}
}

// mostAgain bounds the number of ended leases whose end is repeated.
const mostAgain = 150

// someEndings returns some of the leases that the callers have ended.
func (r *outageRun) someEndings() []ending {
	all := endings(r.callers)
	if every := (len(all) + mostAgain - 1) / mostAgain; every > 1 {
		some := all[:0]
		for i := range all {
			if i%every == 0 {
				some = append(some, all[i])
			}
		}
		all = some
	}
	return all
}

// again repeats the end of a lease on each fresh server, which must give the same answer, and
// reserves under its ID and ends it in another way, which they must refuse.
func (r *outageRun) again(ctx context.Context, e *ending) {
	lease := e.id.String()
	refused := func(what string, err error, want weir.Code) {
		if code := codeOf(err); code != want {
			r.wrong.add(lease, "%s on a new server: got %q, want %q", what, code, want)
		}
	}
	for _, at := range r.fresh {
		_, err := definite(ctx, func() (*weir.Lease, error) {
			return at.Reserve(ctx, &weir.Request{
				LeaseID: e.id, Entity: e.entity, Resource: r.offer.Resource, Costs: e.costs,
			})
		})
		what := "reserve after the end"
		if e.never {
			what = "reserve after a denial and a cancel"
		}
		refused(what, err, weir.Ended)
		if e.never {
			continue
		}
		got, err := settle(ctx, at, e.id, e.actuals)
		switch {
		case err != nil:
			r.wrong.add(lease, "%s again on a new server: %s", verbOf(e.actuals), reason(err))
		case !got.At.Equal(e.at):
			r.wrong.add(lease, "%s again on a new server: another time", verbOf(e.actuals))
		}
		other := e.costs
		if e.actuals != nil {
			other = nil
		}
		_, err = settle(ctx, at, e.id, other)
		refused(string(verbOf(other))+" after "+string(verbOf(e.actuals)), err, weir.Conflict)
	}
}

// codeOf returns the code of an error, or the text of a denial; empty for none.
func codeOf(err error) weir.Code {
	if e, ok := errors.AsType[*weir.Error](err); ok {
		return e.Code
	}
	if err != nil {
		return weir.Code(err.Error())
	}
	return ""
}

// drain reserves what is left of the scarce limit of each entity.
func (r *outageRun) drain(ctx context.Context) {
	r.t.Helper()
	r.drainedFrom = micros()
	c := &caller{service: r.fresh[0], offer: &r.offer, log: r.log, wrong: &r.wrong, denied: &r.denied}
	for _, entity := range r.offer.Entities {
		for range 10 {
			left := r.available(ctx, entity)
			if r.parent {
				left = min(left, r.available(ctx, team))
			}
			if left <= 0 {
				break
			}
			c.keep(ctx, entity, weir.Costs{scarceLimit: left, slowLimit: 1})
		}
	}
}

// available returns what is left of an entity's scarce limit.
func (r *outageRun) available(ctx context.Context, entity string) int64 {
	r.t.Helper()
	status, err := r.fresh[0].Status(ctx, entity, r.offer.Resource)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range status {
		if s.Entity == entity && s.Limit == scarceLimit {
			return s.Available
		}
	}
	r.t.Fatalf("%s has no limit %s", entity, scarceLimit)
	return 0
}
