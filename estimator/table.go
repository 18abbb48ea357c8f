package estimator

import "strings"

// table remembers the calls of a bounded number of keys. It has two parts, each in the order of
// last use. Keys start among the newcomers and move to the settled once they have enough calls for
// an estimate. Only newcomers are forgotten, and a settled key becomes one again when there are too
// many of its sort. So whoever invents keys pushes out other new ones, unless every invented key
// makes as many calls as an estimate needs.
type table struct {
	size   int // keys at most
	window int
	share  int64

	known     map[Key]*keyRecord
	newcomers recordList
	settled   recordList
	forgotten int64 // keys, ever
}

// keyRecord is what is known of a key.
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

// learn adds a call to a key, which becomes known and the last used.
func (t *table) learn(k Key, estimated, used int64) {
	r := t.known[k]
	if r == nil {
		r = t.insert(k)
	}
	r.calls.learn(used, t.share)
	r.score.add(estimated, used)
	t.touch(r)
}

// insert makes room for a new key. What belonged to the one that goes is used again.
func (t *table) insert(k Key) *keyRecord {
	// The caller's strings may be parts of large requests, which must not stay because of them.
	k = Key{Entity: strings.Clone(k.Entity), Model: strings.Clone(k.Model)}
	r := t.newcomers.last // never nil when the table is full: the settled never fill it
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

// touch makes a key the last used of its part, and of the settled where it now is one of them.
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

// settle moves a newcomer to the settled, and the settled key that was not used for longest the
// other way where they are more than three quarters.
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

// recordList is a list that runs through its records, so that moving one allocates nothing.
type recordList struct {
	first, last *keyRecord
	length      int
}

// push puts a record that is in no list in front.
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

// remove takes out a record of this list.
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
