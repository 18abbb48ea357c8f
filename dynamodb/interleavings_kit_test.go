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
	// rewrite changes the requests of each explored server; nil if they are right.
	rewrite func(q *heldRequest)
}

func newInterleavings(t *testing.T) *interleavings {
	t.Helper()
	w := newFaultWorld(t)
	w.eye.mustSet(t, weir.Subject{}, noRefill(interleavedLimit, interleavedCapacity))
	return &interleavings{table: w.table, namespace: w.eye.config.Namespace, begins: w.clock.now()}
}

// interleavedCase is what the schedules of one exploration have in common: calls, each on a
// server of its own, about one lease.
type interleavedCase struct {
	start   string // what was before the calls: see the constants
	charges int    // of the lease, each on a bucket item of its own: 1 or 2
	calls   []modelCall
	crashes bool // one of the servers may crash
	// expired makes the calls when what the servers know of the configuration has expired. A
	// reserve then charges without a plan and reads the configuration at the same time.
	expired bool
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
	if c.expired {
		text.WriteString(" expired")
	}
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
		gate:   &gate{server: number, line: r.line, dead: make(chan struct{}), rewrite: r.rewrite},
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
	r.clock.advance(time.Second)
	if r.expired {
		r.clock.advance(time.Minute)
	}
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
			all = append(all, choice{server: p.gate.server, item: noItem, write: true, crash: true})
		}
	}
	slices.SortFunc(all, func(a, b choice) int {
		switch {
		case a.crash == b.crash:
			return cmp.Compare(a.String(), b.String())
		case a.crash: // last, so that the rest of a schedule that is followed has none
			return 1
		}
		return -1
	})
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

func (r *scheduleRun) note(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *scheduleRun) fault(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	r.note("WRONG: %s", r.wrong[len(r.wrong)-1])
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
