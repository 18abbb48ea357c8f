package dynamodb

import (
	"maps"
	"slices"
	"sync"

	"github.com/weir-limiter/weir/internal/schema"
)

// line is the process's way to one bucket item: one write at a time, in which all go along that
// have arrived meanwhile. A lone one goes at once; there is no timer.
type line struct {
	store *Store
	spot  *spot
	shard int

	mu      sync.Mutex
	members []*member
	rides   []*ride
	running bool
	// shown and shownGhosts are what others may look at: the image after the last commit, and ghosts.
	shown       *image
	adopted     *image     // what another way has made of the item
	underway    []*ride    // those of the commit that goes on
	asked       []sighting // limits that were judged without a write since
	shownGhosts map[string]counter

	// What follows belongs to whoever runs the line.

	image *image // nil: not known
	// seenAt is the number of the latest reservation when the call was sent that the image is from.
	seenAt uint64
	// gone is true where the item is known not to be there.
	gone bool
	// doubtful is true after a write without an answer: the item is looked at before it is written
	// again, and image is as it was before that write, since it may know more than the item says.
	doubtful bool
	// ghosts are limits that were removed from the configuration, as they were: they may come back.
	ghosts map[string]counter
}

// maxMembers is how many reservations one write takes along.
const maxMembers = 100

// submit puts a reservation or a ride in the line; either may be nil. The line runs in a goroutine
// of its own, since a write must not end with the one who happened to begin it.
func (l *line) submit(m *member, r *ride) {
	if r != nil && len(r.changes) > 0 {
		l.spot.forgive()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m != nil {
		l.members = append(l.members, m)
	}
	if r != nil {
		l.rides = append(l.rides, r)
	}
	if !l.running {
		l.running = true
		l.store.running.begin()
		l.spot.hold()
		go l.run()
	}
}

// run writes until nobody is left.
func (l *line) run() {
	defer l.store.running.end()
	defer l.spot.release()
	for {
		b := l.next()
		if b == nil {
			return
		}
		l.commit(b)
	}
}

// batch is who goes along in one commit.
type batch struct {
	members []*member
	rides   []*ride
}

// next takes the next batch out of the line; nil when there is none, and then the line stands.
func (l *line) next() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.adopted != nil {
		l.image, l.gone, l.adopted, l.ghosts = l.adopted, false, nil, maps.Clone(l.shownGhosts)
	}
	if l.image != nil {
		l.image = l.image.touched(l.asked...)
	}
	l.asked = nil
	l.shown, l.shownGhosts = l.image, maps.Clone(l.ghosts)
	b := &batch{rides: slices.Clone(l.rides)}
	l.underway, l.rides = l.rides, nil
	n := 0
	for ; n < len(l.members) && len(b.members) < maxMembers; n++ {
		if m := l.members[n]; m.state.CompareAndSwap(waiting, sent) { // the others have left
			b.members = append(b.members, m)
		}
	}
	l.members = append(l.members[:0:0], l.members[n:]...)
	if len(b.members) == 0 && len(b.rides) == 0 {
		l.running = false
		return nil
	}
	return b
}

// seen is the image after the last commit; nil where the item is not known.
func (l *line) seen() *image {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

// expected is that image after what is given back or charged in any case and is on its way.
func (l *line) expected() *image {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil || len(l.rides)+len(l.underway) == 0 {
		return l.shown
	}
	return reckon(l.shown, slices.Concat(l.underway, l.rides), nil).after
}

// adopt takes over what another way than the line has made of the item, and of which image.
func (l *line) adopt(m, before *image) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shownGhosts = bury(maps.Clone(l.shownGhosts), before, m)
	l.adopted, l.shown = m, m
}

// note notes that a limit was judged or settled without a write.
func (l *line) note(n sighting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil {
		return
	}
	l.shown = l.shown.touched(n)
	switch {
	case l.running:
		l.asked = append(l.asked, n)
	case l.adopted != nil:
		l.adopted = l.shown
	default:
		l.image = l.shown
	}
}

// id names the item.
func (l *line) id() schema.BucketID {
	of := l.spot.subject
	return schema.BucketID{
		Namespace: l.store.namespace, Entity: of.Entity, Resource: of.Resource, Shard: l.shard,
	}
}
