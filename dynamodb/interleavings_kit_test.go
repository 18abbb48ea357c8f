package dynamodb

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/limiter"
)

const (
	interleavedLimit    = "n"
	interleavedCapacity = 1000
	interleavedLifetime = time.Hour
	firstEntity         = "one-"
	secondEntity        = "two-"
)

// interleavings is a namespace of a table for many schedules.
type interleavings struct {
	table     *Table
	namespace string // its ID
	begins    time.Time
	// wrap replaces the store of each explored server; nil if the store is right.
	wrap func(s *Store) driver.Store
}

func newInterleavings(t *testing.T) *interleavings {
	t.Helper()
	w := newFaultWorld(t)
	w.eye.mustSet(t, weir.Subject{}, noRefill(interleavedLimit, interleavedCapacity))
	return &interleavings{table: w.table, namespace: w.eye.config.Namespace, begins: w.clock.now()}
}

// interleavedCase is what the schedules of one exploration have in common: calls, each on a server of
// its own, about one lease.
type interleavedCase struct {
	start   string // what was before the calls: see the constants
	charges int    // of the lease, each on a bucket item of its own: 1 or 2
	calls   []modelCall
	crashes bool // one of the servers may crash
}

// The starts.
const (
	startUnknown = "unknown" // nobody has used the lease's ID
	startLive    = "live"    // the first server has reserved the lease
	startShared  = "shared"  // the first server has reserved the lease, and the others have repeated that
)

func (c *interleavedCase) String() string {
	var text strings.Builder
	text.WriteString(c.start)
	for _, call := range c.calls {
		text.WriteString(", " + call.String())
	}
	return text.String()
}

// exploredServer is a server with a call.
type exploredServer struct {
	store   *Store
	limiter *limiter.Limiter
	gate    *gate
	call    modelCall
	answer  chan string // has room for one
	leave   context.CancelFunc
	started bool
	crashed bool
}

// scheduleRun is the run of one schedule.
type scheduleRun struct {
	*interleavings
	*interleavedCase
	t        *testing.T
	line     *tableLine
	clock    *faultClock
	entities []string // of the charges
	id       weir.LeaseID
	servers  []*exploredServer
	initial  modelLease
	consumed [2]int64 // milli-units that each bucket item counts for the lease
	standing unitPair // units for which the slot stands
	trace    []string
	wrong    []string // what must not be
}

// run runs one schedule in a bubble and returns it. complete is false if the schedule was left
// because its continuations were explored.
func (w *interleavings) run(t *testing.T, line *tableLine, c *interleavedCase, x *exploration) (r *scheduleRun, complete bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r = &scheduleRun{interleavings: w, interleavedCase: c, t: t, line: line, clock: &faultClock{}}
		r.clock.ms.Store(w.begins.UnixMilli())
		r.id = weir.NewLeaseID(r.clock.now())
		r.entities = []string{firstEntity + r.id.String(), secondEntity + r.id.String()}[:c.charges]
		defer r.end()
		r.prepare()
		if complete = r.explore(x); complete && len(r.wrong) == 0 {
			r.judge()
		}
	})
	return r, complete
}

// open starts a server.
func (r *scheduleRun) open(number int) *exploredServer {
	r.t.Helper()
	p := &exploredServer{
		gate:   &gate{server: number, line: r.line, dead: make(chan struct{})},
		answer: make(chan string, 1),
	}
	o := Options{
		Config: r.table.Options.Config, Endpoint: r.table.Options.Endpoint,
		HTTP: &http.Client{Transport: p.gate}, WriteTimeout: time.Minute, Namespace: schema.DefaultNamespace,
	}
	c, err := connect(r.t.Context(), r.table.Name, &o)
	if err != nil {
		r.t.Fatal(err)
	}
	o.Now = c.Now
	p.store = newStore(c, r.namespace, o)
	p.store.hasLeases = true
	var b driver.Store = p.store
	if r.wrap != nil && number > 0 {
		b = r.wrap(p.store)
	}
	p.limiter, err = limiter.New(b, &limiter.Options{
		Now: r.clock.now, StoreTimeout: time.Minute, LeaseLifetime: interleavedLifetime,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.servers = append(r.servers, p)
	return p
}

// prepare starts the servers. Each makes a reservation, so that it has the configuration, knows the
// bucket items and has registered the slice of lease records. Then the calls begin.
func (r *scheduleRun) prepare() {
	r.t.Helper()
	one := modelCall{verb: weir.VerbReserve, units: unitPair{1, 1}}
	for i := range r.calls {
		p := r.open(i + 1)
		p.call = r.calls[i]
		r.before(p, one, weir.LeaseID{}, answerDone)
	}
	if r.start != startUnknown {
		reserve := interleavedCalls(r.charges)[0]
		r.before(r.servers[0], reserve, r.id, answerDone)
		r.initial, _ = r.initial.apply(reserve)
		r.standing = reserve.units
		for i, n := range reserve.units {
			r.consumed[i] = n * 1000
		}
	}
	if r.start == startShared {
		for _, p := range r.servers[1:] {
			r.before(p, interleavedCalls(r.charges)[0], r.id, answerReplay)
		}
	}
	r.clock.advance(time.Minute)
	for _, p := range r.servers {
		p.gate.shutNow()
		ctx, leave := context.WithCancel(r.t.Context())
		p.leave = leave
		go func() { p.answer <- p.call.make(ctx, p.limiter, r.entities, r.id) }()
	}
}

// before makes a call before the schedule.
func (r *scheduleRun) before(p *exploredServer, c modelCall, id weir.LeaseID, want string) {
	r.t.Helper()
	if got := c.make(r.t.Context(), p.limiter, r.entities, id); got != want {
		r.t.Fatalf("%v: got %s", c, got)
	}
	p.store.running.Wait()
}

// explore executes requests in the order of the schedule until no server has any.
func (r *scheduleRun) explore(x *exploration) (complete bool) {
	r.t.Helper()
	for {
		synctest.Wait()
		choices := r.choices()
		if len(choices) == 0 {
			return true
		}
		c, ok, err := x.next(choices)
		if err != nil {
			r.fault("%v", err)
			return true
		}
		if !ok {
			return false
		}
		r.execute(c)
	}
}

// choices returns what can be executed next.
func (r *scheduleRun) choices() []choice {
	var all []choice
	mayCrash := r.crashes && !slices.ContainsFunc(r.servers, func(p *exploredServer) bool { return p.crashed })
	for _, p := range r.servers {
		if p.crashed {
			continue
		}
		for _, q := range p.gate.waiting() {
			c := choice{server: p.gate.server, item: q.item, write: q.write}
			if slices.Contains(all, c) {
				r.fault("server %d has two requests at the same time for %v", c.server, c)
				continue
			}
			all = append(all, c)
			if c.write && mayCrash {
				c.crash = true
				all = append(all, c)
			}
		}
		if mayCrash && !p.started {
			all = append(all, choice{server: p.gate.server, item: noItem, crash: true})
		}
	}
	slices.SortFunc(all, func(a, b choice) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// execute executes a choice.
func (r *scheduleRun) execute(c choice) {
	r.t.Helper()
	p := r.servers[c.server-1]
	p.started, p.crashed = true, c.crash
	if c.item == noItem {
		r.note("server %d is killed before its first request", c.server)
		return
	}
	for _, q := range p.gate.waiting() {
		if q.item != c.item || q.write != c.write {
			continue
		}
		p.gate.remove(q)
		a := r.line.do(q)
		if a.err != nil {
			r.t.Fatalf("the table: %v", a.err)
		}
		r.observe(p, q, a)
		if c.crash {
			r.note("server %d is killed", c.server)
			return
		}
		q.answer <- a
		return
	}
}

// observe follows what the items hold. At no moment does a slot stand for more than the bucket
// counts.
func (r *scheduleRun) observe(p *exploredServer, q *heldRequest, a *tableAnswer) {
	r.t.Helper()
	what := ""
	switch {
	case a.status != http.StatusOK:
		what = "refused"
	case q.write && (q.item == firstBucket || q.item == secondBucket):
		n, ok := a.consumedAfter(interleavedLimit)
		if !ok {
			r.t.Fatalf("no units in the answer %s to %s", a.body, q.body)
		}
		i, n := int(q.item-firstBucket), n-int64(len(r.calls))*1000
		what = fmt.Sprintf("%+d milli-units", n-r.consumed[i])
		r.consumed[i] = n
	case q.write && q.item == recordItem:
		slot, err := q.slotAfter(r.id)
		if err != nil {
			r.t.Fatalf("the slot in %s: %v", q.body, err)
		}
		what = slotText(slot)
		r.standing = unitPair{}
		if slot != nil && slot.State == schema.LeaseLive {
			r.standing = slotUnits(slot)
		} else if slot != nil && slot.State == schema.LeaseCompleted {
			r.standing = p.call.units
		}
	}
	r.note("%-30s %d %-12s %-8s %s", p.call, q.server, q.operation, itemText(q.item), what)
	for i, n := range r.standing {
		if missing := n*1000 - r.consumed[i]; missing > 0 {
			r.fault("the slot stands for %d milli-units that are not charged", missing)
		}
	}
}

func itemText(item byte) string {
	switch item {
	case firstBucket:
		return "bucket"
	case secondBucket:
		return "bucket 2"
	case recordItem:
		return "record"
	}
	return "other"
}

func slotText(slot *schema.Lease) string {
	switch {
	case slot == nil:
		return "empty"
	case slot.State == schema.LeaseLive:
		return fmt.Sprintf("live with %v units, sequence number %d", slotUnits(slot), slot.Seq)
	}
	return string(leaseState(slot.State))
}

func (r *scheduleRun) note(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *scheduleRun) fault(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	r.note("WRONG: %s", r.wrong[len(r.wrong)-1])
}

// judge checks the answers and the items after the schedule. Then a fresh server repeats the calls
// that were answered and cancels the lease, and judge checks those answers and the items again.
func (r *scheduleRun) judge() {
	r.t.Helper()
	var made []madeCall
	var bound unitPair // of what may stay charged in excess
	for i, p := range r.servers {
		m := madeCall{p.call, noAnswer}
		if p.crashed {
			bound = r.initial.mostOf(p.call, slices.Concat(r.calls[:i], r.calls[i+1:]))
		} else {
			select {
			case m.answer = <-p.answer:
			default:
				r.fault("server %d waits without a request", p.gate.server)
				return
			}
		}
		r.note("server %d: %s: %s", p.gate.server, p.call, m.answer)
		made = append(made, m)
	}
	leases := r.initial.serialOrders(made)
	if len(leases) == 0 {
		r.fault("no order of the calls explains the answers")
		return
	}
	fresh := r.open(0)
	leases = r.matching(leases, fresh, bound)
	made = append(made, madeCall{modelCall{verb: weir.VerbCancel}, answerDone})
	for _, m := range made {
		if m.answer == noAnswer || len(leases) == 0 {
			continue
		}
		answer := m.make(r.t.Context(), fresh.limiter, r.entities, r.id)
		fresh.store.running.Wait()
		r.note("a fresh server: %s: %s", m, answer)
		var left []modelLease
		for _, l := range leases {
			if after, want := l.apply(m.modelCall); want == answer && !slices.Contains(left, after) {
				left = append(left, after)
			}
		}
		if leases = left; len(left) == 0 {
			r.fault("no order of the calls explains this answer")
		}
	}
	r.matching(leases, fresh, bound)
}

// matching reads the items, and returns those of the possible leases that agree with them.
func (r *scheduleRun) matching(leases []modelLease, fresh *exploredServer, bound unitPair) []modelLease {
	r.t.Helper()
	if len(leases) == 0 {
		return nil
	}
	slot := r.read(fresh)
	r.note("the table: %v milli-units; %s", r.consumed, slotText(slot))
	left := slices.DeleteFunc(slices.Clone(leases), func(l modelLease) bool {
		for i := range l.units {
			if n := r.consumed[i] - l.units[i]*1000; n < 0 || n > bound[i]*1000 {
				return true
			}
		}
		return !l.shows(slot, r.clock.now().UnixMilli())
	})
	if len(left) == 0 {
		r.fault("want one of %+v, with at most %v units in excess", leases, bound)
	}
	return left
}

// read reads the items.
func (r *scheduleRun) read(by *exploredServer) *schema.Lease {
	r.t.Helper()
	record, _ := schema.LeaseRecordKey(r.namespace, r.id)
	keys := []schema.Key{record}
	for _, e := range r.entities {
		keys = append(keys, schema.BucketID{Namespace: r.namespace, Entity: e, Resource: testResource}.Key())
	}
	items, err := by.store.client.BatchGet(r.t.Context(), keys, true)
	if err != nil {
		r.t.Fatal(err)
	}
	slot, err := schema.ParseLease(items[0], r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, item := range items[1:] {
		b, err := schema.ParseBucket(item)
		if err != nil {
			r.t.Fatal(err)
		}
		l := b.Limit(interleavedLimit)
		r.consumed[i] = l.Consumed - int64(len(r.calls))*1000
		if l.Balance != interleavedCapacity*1000-l.Consumed {
			r.fault("the balance is %d, and %d are consumed", l.Balance, l.Consumed)
		}
	}
	return slot
}

// end kills the servers.
func (r *scheduleRun) end() {
	for _, p := range r.servers {
		if p.leave != nil {
			p.leave()
		}
		close(p.gate.dead)
	}
	for _, p := range r.servers {
		_ = p.limiter.Close()
	}
	synctest.Wait()
}

func (r *scheduleRun) String() string { return strings.Join(r.trace, "\n") }

// explore runs all schedules of a case, up to the first one that fails. It returns the number of
// schedules, and the failure with its trace; empty if there is none.
func (w *interleavings) explore(t *testing.T, c *interleavedCase, x *exploration) (done int, failure string) {
	t.Helper()
	line := newTableLine(t)
	for more := true; more; more = x.advance() {
		r, complete := w.run(t, line, c, x)
		if complete {
			done++
		}
		if len(r.wrong) > 0 {
			return done, fmt.Sprintf("WEIR_TEST_SCHEDULE=%q: %s\n%v", fmt.Sprintf("%v: %v", c, x), r.wrong[0], r)
		}
	}
	return done, ""
}
