package statuspage

import (
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/apijson"
)

const (
	// maxActivityEntities is how many entities are remembered, enough to suggest names from.
	maxActivityEntities = 250
	maxActivityDenials  = 100
	// maxActivityExceeded is how many limits of a denial are kept.
	maxActivityExceeded = 8
)

// recentEntities remembers the entities that were touched last. Each shard remembers as many as a
// report has, so the newest of all are among theirs.
type recentEntities struct {
	index   map[string]int32
	entries []recentEntity // a ring of links through entry 0, the newest next to it
}

type recentEntity struct {
	httpapi.ActivityEntity
	order      uint64
	prev, next int32
}

// touch makes an entity the newest and returns its name as it is kept here.
func (r *recentEntities) touch(entity string, atMS int64, order uint64) string {
	if r.index == nil {
		r.index = map[string]int32{}
		r.entries = make([]recentEntity, 1, 8)
	}
	entity = clip(entity)
	i := r.entries[0].next // most limits are of the entity before them
	if i == 0 || r.entries[i].Entity != entity {
		var ok bool
		if i, ok = r.index[entity]; !ok {
			i = r.place()
			r.entries[i].Entity = keep(entity)
			r.index[r.entries[i].Entity] = i
		}
		r.front(i)
	}
	e := &r.entries[i]
	e.LastMS, e.order = atMS, order
	return e.Entity
}

// place returns an entry for a new entity: a fresh one, or that of the oldest, which is forgotten.
func (r *recentEntities) place() int32 {
	if len(r.entries) <= maxActivityEntities {
		i := int32(len(r.entries))
		r.entries = append(r.entries, recentEntity{prev: i, next: i})
		return i
	}
	i := r.entries[0].prev
	delete(r.index, r.entries[i].Entity)
	return i
}

// front makes an entry the newest.
func (r *recentEntities) front(i int32) {
	e := &r.entries[i]
	r.entries[e.prev].next, r.entries[e.next].prev = e.next, e.prev
	e.prev, e.next = 0, r.entries[0].next
	r.entries[e.next].prev = i
	r.entries[0].next = i
}

// keep copies a name: the caller's may be a part of a whole request body.
func keep(s string) string { return strings.Clone(clip(s)) }

// denialRing has the last denials. Its slots are used again, with their lists.
type denialRing struct {
	slots []recentDenial
	n     int // how many slots have been used again
}

type recentDenial struct {
	httpapi.ActivityDenial
	order uint64
}

// next returns the slot of the oldest denial, or a fresh one.
func (r *denialRing) next() *recentDenial {
	if len(r.slots) < maxActivityDenials {
		r.slots = append(r.slots, recentDenial{})
		return &r.slots[len(r.slots)-1]
	}
	d := &r.slots[r.n%maxActivityDenials]
	r.n++
	return d
}

func (d *recentDenial) begin(order uint64, at time.Time, denied *weir.DeniedError) {
	d.order = order
	d.ActivityDenial = httpapi.ActivityDenial{
		AtMS: at.UnixMilli(), RetryAfterMS: apijson.CeilUnits(denied.RetryAfter, time.Millisecond),
		AtLeast: denied.AtLeast, Contended: denied.Contended,
		Exceeded: d.Exceeded[:0],
	}
}

// exceed adds a limit that denied, on an entity and with a key that are kept already.
func (d *recentDenial) exceed(entity string, key limitKey, l *weir.LimitStatus) {
	if len(d.Exceeded) == maxActivityExceeded {
		d.More++
		return
	}
	resource := d.Resource
	if l.Resource != resource {
		resource = keep(l.Resource)
	}
	d.Exceeded = append(d.Exceeded, httpapi.ActivityExceeded{
		Entity: entity, Resource: resource, Limit: key.name, Kind: key.kind,
		Capacity: l.Capacity, Available: l.Available, Requested: l.Requested,
	})
}
