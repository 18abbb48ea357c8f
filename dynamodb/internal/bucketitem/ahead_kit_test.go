package bucketitem

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// batchSize is the number of records that an aggregator gets at once.
const batchSize = 100

// judge decides by a batch of records which buckets to double.
type judge func(records []*aggregator.Record, now time.Time) []aggregator.Doubling

// aheadFleet is the callers of one bucket in virtual time. The store's code makes every write, and
// the write's record goes to an aggregator. The store's own doubling is noted and not made.
type aheadFleet struct {
	rng     *rand.Rand
	judge   judge
	subject *subjectState
	nowMS   int64
	limit   weir.Limit
	images  []*Image // by shard; nil if it does not exist
	items   map[schema.BucketID]schema.Item
	pending []*aggregator.Record
	written int
	// doublings are those that the aggregator made. early says which of them the store's rule of
	// the time between two would not have made.
	doublings []aheadDoubling
	early     []string
	// refused counts doublings that the first shard's item refused.
	refused int
	// storeAt is the time at which the store first wanted to double; 0 if it never did.
	storeAt int64
}

// aheadDoubling is a doubling and its time, from the start.
type aheadDoubling struct {
	to int
	at time.Duration
}

func (d aheadDoubling) String() string { return fmt.Sprintf("%d shards after %v", d.to, d.at) }

// aheadStart is when a fleet starts, in Unix ms.
const aheadStart = int64(1_800_000_000_000)

func newAheadFleet(j judge) *aheadFleet {
	f := &aheadFleet{
		rng: rand.New(rand.NewPCG(1, 2)), judge: j, nowMS: aheadStart,
		subject: aheadSubject(), items: make(map[schema.BucketID]schema.Item),
		// A limit that is never full is written without a refill, until wcu is used up.
		limit: weir.Limit{
			Name: "rpm", Kind: weir.Bucket, Capacity: 1 << 30, RefillAmount: 320, RefillPeriod: time.Minute,
		},
	}
	f.create(0, 1, StoredLimit(&f.limit).Capacity/4*3)
	return f
}

// aheadSubject returns the state of a subject of which nothing is known.
func aheadSubject() *subjectState {
	ns := &namespaceState{
		Client: &client.Client{TableName: "table"}, Config: &config.Reader{Namespace: "ns"},
	}
	return &subjectState{
		ns: ns, Subject: weir.Subject{Entity: "acme", Resource: "gpt-4o"}, shards: 1,
		items: make(map[int]*publishedItem),
	}
}

// create makes the item of a shard.
func (f *aheadFleet) create(shard, shards int, balance int64) {
	id := f.subject.id(shard)
	l := StoredLimit(&f.limit)
	l.Balance = balance
	b := &schema.Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: shard,
		RefilledMS: f.nowMS, Shards: shards, Limits: []schema.BucketLimit{l}, Writes: schema.NewWrites(),
	}
	f.stored(shard, b, nil)
}

// stored puts the item of a shard into the table, and its record into the stream.
func (f *aheadFleet) stored(shard int, b *schema.Bucket, after *Image) {
	for len(f.images) <= shard {
		f.images = append(f.images, nil)
	}
	f.written++
	position, err := aggregator.NewPosition("2027-01-15T00:00:00.000", fmt.Sprint(f.written))
	if err != nil {
		panic(err)
	}
	r := &aggregator.Record{
		Position: position, At: time.UnixMilli(f.nowMS).Truncate(time.Second),
		Kind: aggregator.Inserted, Key: b.ID().Key(), Old: f.items[b.ID()], New: b.Item(),
	}
	if r.Old != nil {
		r.Kind = aggregator.Modified
	}
	f.items[b.ID()] = r.New
	f.images[shard] = newImage(b, after, b.Shards, f.nowMS)
	f.pending = append(f.pending, r)
}

// run makes writes for a time, at a rate in writes a second.
func (f *aheadFleet) run(rate int, d time.Duration) {
	begin := f.nowMS
	for i := range int64(rate) * int64(d/time.Second) {
		f.nowMS = begin + i*1000/int64(rate)
		f.write()
		if len(f.pending) >= batchSize {
			f.deliver()
		}
	}
	f.nowMS = begin + d.Milliseconds()
}

// write takes one unit from a shard that is chosen at random. The process learns of a new count
// from the item that it writes.
func (f *aheadFleet) write() {
	shard := f.rng.IntN(f.subject.ShardCount())
	if shard >= len(f.images) || f.images[shard] == nil {
		f.split(shard)
	}
	m := f.images[shard]
	w := &Waiter{Now: f.nowMS, Takes: []Take{{Name: f.limit.Name, Milli: 1000, Limit: &f.limit}}}
	r := evaluate(m, nil, []*Waiter{w})
	var out *Write
	leads := func() *schema.Bucket { return out.After.Item }
	if m.needsNoRefill(r) {
		out = f.subject.writer(shard).speculativeWrite(m, r)
		leads().Writes.Balance -= WriteMilli
		leads().Writes.Consumed += WriteMilli
	} else {
		out = f.subject.writer(shard).normalWrite(m, r, nil)
	}
	f.stored(shard, leads(), out.After)
	f.subject.RaiseShards(leads().Shards)
	c := &commit{
		itemState: &itemState{ns: f.subject.ns, subject: f.subject, shard: shard, image: f.images[shard]},
		Batch:     Batch{Waiters: []*Waiter{w}},
	}
	if c.shouldDouble() && f.storeAt == 0 {
		f.storeAt = f.nowMS
	}
}

// split makes the item of a shard with half of another.
func (f *aheadFleet) split(shard int) {
	from := parentShard(shard)
	if from >= len(f.images) || f.images[from] == nil {
		f.split(from)
	}
	b := f.images[from].Item.Copy()
	half := b.Limits[0].Balance / 2
	b.Limits[0].Balance -= half
	f.stored(from, b, nil)
	f.create(shard, b.Shards, half)
}

// deliver gives the pending records to the aggregator, and doubles what it asks to.
func (f *aheadFleet) deliver() {
	records := f.pending
	f.pending = nil
	for _, d := range f.judge(records, time.UnixMilli(f.nowMS)) {
		if f.images[0].Item.Shards != d.From {
			f.refused++
			continue
		}
		at := time.Duration(f.nowMS-aheadStart) * time.Millisecond
		if !f.subject.canDouble(d.From, f.nowMS) {
			f.early = append(f.early, fmt.Sprintf("%d shards at %v", d.To, at))
		}
		f.doublings = append(f.doublings, aheadDoubling{d.To, at})
		for shard, m := range f.images {
			if m != nil && m.Item.Shards < d.To {
				b := m.Item.Copy()
				b.Shards = d.To
				f.stored(shard, b, nil)
			}
		}
	}
}
