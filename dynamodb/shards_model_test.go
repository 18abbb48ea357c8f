package dynamodb

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/kernel"
)

// The bucket of the model.
const (
	modelCapacity   = 400
	modelPeriod     = time.Minute // the time in which the whole bucket refills
	modelOperations = 150
	// modelSlack is the largest amount by which rounding may put the shares ahead of the exact
	// bucket, in milli-units.
	modelSlack = 100
)

// shardModel makes random calls of several processes, one after the other, on a bucket that is
// doubled again and again, and compares it with one exact bucket.
type shardModel struct {
	*tableWorld
	random *rand.Rand
	how    processOptions
	told   bool // the count is raised on all shards at once, as another program would
	procs  []*process
	ever   []*process // including those that only settle now
	leases []*weir.Lease
	// balance is the balance of the exact bucket at the instant at (Unix ms), in milli-units.
	balance, at int64
	// all is the sum of the shards when they were last read. owes is true if one of them was in
	// debt, and the field there has the number of existing shards out of count.
	all  int64
	owes bool
	// least is the least that all shards may have together after a settlement, in milli-units.
	least int64
	// overrun is true after a settlement with more than was reserved, if no shard was in debt
	// before.
	overrun      bool
	there, count int
	history      []string
	admitted     int
	denied       int
}

// TestShardsEqualOneBucket checks that the shards of a bucket that is split again and again never
// have more together than one bucket would, that no request is denied that they have enough for
// together, that no part of a refund is lost, and that no shard has units while another is in debt.
func TestShardsEqualOneBucket(t *testing.T) {
	t.Parallel()
	table := madeTable(t)
	for _, c := range []struct {
		name string
		how  processOptions
		told bool
		seed uint64
	}{
		{"split by its writes", processOptions{}, false, 41},
		{"split by others", processOptions{}, true, 62},
		{"split by its writes, without speculation", processOptions{store: Options{NoSpeculation: true}}, false, 63},
		{"split by others, with transactions", processOptions{store: Options{Transactional: true}}, true, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", c.seed)
			inTableWorld(t, table, nil, func(w *tableWorld) {
				m := &shardModel{
					tableWorld: w, random: rand.New(rand.NewPCG(c.seed, 7)), how: c.how, told: c.told,
					balance: modelCapacity * 1000, at: w.clock.Now().UnixMilli(), least: math.MinInt64 + modelSlack,
				}
				m.play()
			})
		})
	}
}

func (m *shardModel) play() {
	m.system(per("n", modelCapacity, modelCapacity, modelPeriod))
	for range 3 {
		m.procs = append(m.procs, m.begin())
	}
	m.procs[0].admit(testEntity, weir.Costs{"n": 0})
	m.compare()
	for range soak.Amount(modelOperations/2, modelOperations) {
		p := m.procs[m.random.IntN(len(m.procs))]
		switch x := m.random.IntN(100); {
		case x < 55:
			m.request(p)
		case x < 75:
			m.settle()
		case x < 92:
			m.wait()
		case x < 97:
			m.double(p)
		default:
			i := m.random.IntN(len(m.procs))
			m.procs[i] = m.begin()
			m.note("a new process")
		}
		m.compare()
	}
	m.Logf("%d admitted, %d denied; %d of %d shards are there", m.admitted, m.denied,
		m.there, m.count)
	m.checkShares()
}

// begin starts a process.
func (m *shardModel) begin() *process {
	m.Helper()
	p := m.process(m.how)
	m.ever = append(m.ever, p)
	return p
}

func (m *shardModel) note(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf("%s: ", m.since())+fmt.Sprintf(format, args...))
}

// refill brings the exact bucket to now.
func (m *shardModel) refill() {
	now := m.clock.Now().UnixMilli()
	rate := kernel.Rate{
		CapacityMilli: modelCapacity * 1000, RefillMilli: modelCapacity * 1000, PeriodMS: modelPeriod.Milliseconds(),
	}
	m.balance, m.at = rate.Refill(m.balance, m.at, now), now
}

// compare checks that the shards have no more than the exact bucket.
func (m *shardModel) compare() {
	m.Helper()
	for _, p := range m.ever {
		p.quiet()
	}
	m.refill()
	found := m.shards(testEntity)
	if found[0] == nil {
		m.fail("the first shard is gone")
	}
	m.all, m.owes, m.there, m.count = 0, false, len(found), found[0].Shards
	var fullest, deepest int64
	for _, b := range found {
		c := bucketitem.NewLimitImage(*b.Limit("n"), b.RefilledMS, m.count)
		has := c.Peek(m.at, m.count)
		m.all, m.owes = m.all+has, m.owes || has < 0
		fullest, deepest = max(fullest, has), min(deepest, has)
	}
	if m.all < m.least-modelSlack {
		m.fail("the shards have %d milli-units after a settlement, want %d", m.all, m.least)
	}
	if m.overrun && fullest >= 1000 && deepest <= -1000 {
		m.fail("a shard is in debt of %d milli-units, and another one has %d", -deepest, fullest)
	}
	m.least, m.overrun = math.MinInt64+modelSlack, false
	if m.all > m.balance+modelSlack {
		m.fail("the shards have %d milli-units, and one bucket would have %d", m.all, m.balance)
	}
}

// fail ends the case and prints the calls before.
func (m *shardModel) fail(format string, args ...any) {
	m.Helper()
	last := m.history[max(0, len(m.history)-25):]
	for shard, b := range m.shards(testEntity) {
		last = append(last, fmt.Sprintf("shard %d of %d: %+v, refilled at %d", shard, b.Shards, *b.Limit("n"), b.RefilledMS))
	}
	m.Fatalf("%s: %s\n%s", m.since(), fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

func (m *shardModel) request(p *process) {
	cost := m.random.Int64N(40)
	if m.random.IntN(6) == 0 {
		cost = m.random.Int64N(modelCapacity)
	}
	l, err := p.ask(testEntity, weir.Costs{"n": cost})
	switch {
	case err == nil:
		m.admitted++
		m.note("took %d, where %d were", cost, m.all)
		m.leases = append(m.leases, l)
		m.balance -= cost * 1000
	case isDenied(err):
		m.denied++
		m.note("denied %d, where %d were", cost, m.all)
		if m.all >= cost*1000 {
			m.fail("denied %d, and the shards have %d milli-units: %v", cost, m.all, err)
		}
	default:
		m.fail("%d: got %v, want admitted or denied", cost, err)
	}
}

// settle completes a lease with less than it stands for, sometimes with more.
func (m *shardModel) settle() {
	if len(m.leases) == 0 {
		return
	}
	i := m.random.IntN(len(m.leases))
	l := m.leases[i]
	m.leases = append(m.leases[:i], m.leases[i+1:]...)
	cost := l.Limits[0].Requested
	used := m.random.Int64N(cost + 1)
	if m.random.IntN(8) == 0 {
		used = cost + m.random.Int64N(20)
	}
	m.end(l, cost, used)
	if used < cost { // another process remembers its denial until then
		m.clock.Advance(bucketitem.MaxDenialMS * time.Millisecond)
	}
}

// end ends a lease, unless it has expired: then it stays charged.
func (m *shardModel) end(l *weir.Lease, cost, used int64) {
	var err error
	if used == 0 {
		_, err = l.Cancel(m.Context())
	} else {
		_, err = l.Complete(m.Context(), weir.Costs{"n": used})
	}
	switch {
	case errors.Is(err, weir.UnknownLease):
	case err != nil:
		m.fail("settle %d of %d: %v", used, cost, err)
	default:
		m.note("used %d of %d", used, cost)
		m.overrun = used > cost && !m.owes
		m.least = min(m.all+(cost-used)*1000, modelCapacity*1000)
		m.balance = min(m.balance+(cost-used)*1000, max(m.balance, modelCapacity*1000))
	}
}

func (m *shardModel) wait() {
	d := time.Duration(m.random.IntN(1500)) * time.Millisecond
	if m.random.IntN(20) == 0 {
		d = time.Duration(m.random.IntN(90)) * time.Second
	}
	m.clock.Advance(d)
	m.note("waited %s", d)
}

// double doubles the shards. A process that does not know the new number may refund more to a shard
// than its share.
func (m *shardModel) double(p *process) {
	was := m.count
	if was == sharding.MaxShards {
		return
	}
	if m.told {
		for shard := range m.shards(testEntity) {
			m.edit(testEntity, shard, map[string]int64{schema.AttrShardCount: int64(2 * was)})
		}
	} else {
		room := schema.BucketAttribute(schema.WritesLimit, schema.FieldBalance)
		m.edit(testEntity, 0, map[string]int64{room: -1_000_000_000})
		for range 12 { // the first picks may all be other shards
			m.requestNothing(p)
			if m.tableWorld.count(testEntity) != was {
				break
			}
		}
		m.edit(testEntity, 0, map[string]int64{room: 1_000_000})
	}
	m.note("%d shards, doubled", was)
}

// requestNothing makes a request with a cost of 0, which is denied on a bucket in debt.
func (m *shardModel) requestNothing(p *process) {
	if _, err := p.ask(testEntity, weir.Costs{"n": 0}); err != nil && !isDenied(err) {
		m.fail("nothing was asked: %v", err)
	}
}

// checkShares checks that each existing shard has its share after everything was refunded or repaid
// and has had the time to refill.
func (m *shardModel) checkShares() {
	for _, l := range m.leases {
		m.end(l, l.Limits[0].Requested, 0)
	}
	m.compare()
	for range 20 {
		if !m.owes {
			break
		}
		m.clock.Advance(modelPeriod)
		m.compare()
	}
	m.clock.Advance(modelPeriod)
	m.compare()
	least := int64(modelCapacity * m.there / m.count)
	got := m.procs[0].takeAll(testEntity, "n", modelCapacity)
	if got < least || got > modelCapacity {
		m.fail("%d were admitted in the end, want %d to %d", got, least, modelCapacity)
	}
}
