package statuspage

import (
	"strings"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/apijson"
)

const (
	// maxEntities bounds the entities that are kept, from which the page suggests names.
	maxEntities = 250
	maxDenials  = 100
	// maxExceeded bounds the limits of a denial that are kept.
	maxExceeded = 8
)

// recentEntities has the entities that were judged last. Each segment keeps as many as a report
// has, so the newest of all segments are among them.
type recentEntities struct {
	index   map[string]int32
	entries []recentEntity // a ring linked through entry 0, with the newest next to that
}

type recentEntity struct {
	httpapi.ActivityEntity
	order      uint64
	asked      uint64 // the order of the last reservation that was counted
	prev, next int32
}

// touch makes an entity the newest, and returns a copy of its name.
func (r *recentEntities) touch(entity string, atMS int64, order uint64) string {
	if r.index == nil {
		r.index = map[string]int32{}
		r.entries = make([]recentEntity, 1, 8)
	}
	entity = clip(entity)
	i := r.entries[0].next // adjacent limits often have the same entity
	if i == 0 || r.entries[i].Entity != entity {
		var ok bool
		if i, ok = r.index[entity]; !ok {
			i = r.newEntry()
			r.entries[i].ActivityEntity = httpapi.ActivityEntity{Entity: keep(entity)}
			r.index[r.entries[i].Entity] = i
		}
		r.front(i)
	}
	e := &r.entries[i]
	e.LastMS, e.order = atMS, order
	return e.Entity
}

// asked counts a reservation that names the entity that was touched last, once if several charges
// of it do.
func (r *recentEntities) asked(order uint64) {
	if e := &r.entries[r.entries[0].next]; e.asked != order {
		e.asked = order
		e.Asked++
	}
}

// newEntry returns an entry for a new entity: an unused one, or the entry of the oldest entity.
func (r *recentEntities) newEntry() int32 {
	if len(r.entries) <= maxEntities {
		i := int32(len(r.entries))
		r.entries = append(r.entries, recentEntity{prev: i, next: i})
		return i
	}
	i := r.entries[0].prev
	delete(r.index, r.entries[i].Entity)
	return i
}

// front moves an entry to the front of the list.
func (r *recentEntities) front(i int32) {
	e := &r.entries[i]
	r.entries[e.prev].next, r.entries[e.next].prev = e.next, e.prev
	e.prev, e.next = 0, r.entries[0].next
	r.entries[e.next].prev = i
	r.entries[0].next = i
}

// appendTo appends the entries, the newest first.
func (r *recentEntities) appendTo(list []recentEntity) []recentEntity {
	if len(r.entries) == 0 {
		return list
	}
	for i := r.entries[0].next; i != 0; i = r.entries[i].next {
		list = append(list, r.entries[i])
	}
	return list
}

// keep returns a copy of a name, because the caller's string may keep a whole request body in
// memory.
func keep(s string) string { return strings.Clone(clip(s)) }

// denialRing has the last denials. It reuses its cells and their slices.
type denialRing struct {
	cells []recentDenial
	n     int // the number of used cells
}

type recentDenial struct {
	httpapi.ActivityDenial
	order uint64
}

// next returns an unused cell, or the cell of the oldest denial.
func (r *denialRing) next() *recentDenial {
	if len(r.cells) < maxDenials {
		r.cells = append(r.cells, recentDenial{})
		return &r.cells[len(r.cells)-1]
	}
	d := &r.cells[r.n%maxDenials]
	r.n++
	return d
}

func (d *recentDenial) begin(order uint64, at time.Time, denied *weir.DeniedError) {
	d.order = order
	d.ActivityDenial = httpapi.ActivityDenial{
		ID: int64(order), AtMS: at.UnixMilli(), RetryAfterMS: apijson.CeilUnits(denied.RetryAfter, time.Millisecond),
		AtLeast: denied.AtLeast, Contended: denied.Contended,
		Exceeded: d.Exceeded[:0], Charges: d.Charges[:0],
	}
}

// charge adds who asked. The string entity is already a copy.
func (d *recentDenial) charge(entity, resource string) {
	resource = keep(resource)
	if len(d.Charges) == 0 {
		d.Entity, d.Resource = entity, resource
	}
	d.Charges = append(d.Charges, httpapi.ActivitySubject{Entity: entity, Resource: resource})
}

// exceed adds a limit that denied. The strings entity and key are already copies.
func (d *recentDenial) exceed(entity string, key limitKey, l *weir.LimitStatus) {
	if len(d.Exceeded) == maxExceeded {
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
