package estimator

import "strings"

// table remembers the calls of a bounded number of keys, in two lists sorted by last use. A new key
// is in newcomers. It moves to settled once it has enough calls for an estimate. Only newcomers are
// forgotten; if there are too many settled keys, the one that was not used for longest becomes a
// newcomer again. So a caller that invents keys displaces only other new ones, unless every
// invented key makes as many calls as an estimate needs.
type table struct {
	size   int // bounds the number of keys
	window int
	share  int64

	known     map[Key]*keyRecord
	newcomers recordList
	settled   recordList
	forgotten int64 // number of keys forgotten in all
}

// keyRecord is the entry of a key.
type keyRecord struct {
	key     Key
	calls   callHistory
	score   Score
	settled bool

	before, after *keyRecord // in its list
}

func newTable(size, window int, share int64) *table {
	return &table{size: size, window: window, share: share, known: make(map[Key]*keyRecord)}
}

// learn adds a call of a key, which is remembered from now on and was used last.
func (t *table) learn(k Key, estimated, used int64) {
	r := t.known[k]
	if r == nil {
		r = t.insert(k)
	}
	r.calls.learn(used, t.share)
	r.score.add(estimated, used)
	t.touch(r)
}

// insert adds a new key. If the table is full, it forgets the newcomer that was not used for
// longest and uses its memory again.
func (t *table) insert(k Key) *keyRecord {
	// Clone the names: they may be parts of large requests, which would stay in memory with them.
	k = Key{Entity: strings.Clone(k.Entity), Model: strings.Clone(k.Model)}
	r := t.newcomers.last // not nil if the table is full, because settled keys never fill it
	if len(t.known) < t.size {
		r = &keyRecord{key: k, calls: newWindow(t.window)}
	} else {
		delete(t.known, r.key)
		t.forgotten = add(t.forgotten, 1)
		t.newcomers.remove(r)
		r.calls.reset()
		*r = keyRecord{key: k, calls: r.calls}
	}
	t.newcomers.push(r)
	t.known[k] = r
	return r
}

// touch makes a key the last used of its list, and moves it to settled if it has enough calls now.
func (t *table) touch(r *keyRecord) {
	switch {
	case r.settled:
		t.settled.remove(r)
		t.settled.push(r)
	case r.calls.spare(t.share) < 0 || t.size == 1:
		t.newcomers.remove(r)
		t.newcomers.push(r)
	default:
		t.promote(r)
	}
}

// promote moves a newcomer to settled. If settled then had more than three quarters of all keys,
// its key that was not used for longest becomes a newcomer.
func (t *table) promote(r *keyRecord) {
	t.newcomers.remove(r)
	if t.settled.length == t.size-max(1, t.size/4) {
		old := t.settled.last
		t.settled.remove(old)
		old.settled = false
		t.newcomers.push(old)
	}
	r.settled = true
	t.settled.push(r)
}

// recordList is a doubly linked list through the records, so that moving a record allocates
// nothing.
type recordList struct {
	first, last *keyRecord
	length      int
}

// push adds a record that is in no list at the front.
func (c *recordList) push(r *keyRecord) {
	r.after = c.first
	if c.first == nil {
		c.last = r
	} else {
		c.first.before = r
	}
	c.first = r
	c.length++
}

// remove removes a record of this list.
func (c *recordList) remove(r *keyRecord) {
	if r.before == nil {
		c.first = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		c.last = r.before
	} else {
		r.after.before = r.before
	}
	r.before, r.after = nil, nil
	c.length--
}
