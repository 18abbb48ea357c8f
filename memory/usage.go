package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/weir-limiter/weir"
)

// Usage is counted in two places. The state of a limit has the usage of the hour of the latest
// call, in hourUse, so that counting on the way of a call needs no further lock and no memory.
// When a call of another hour counts, and when an idle state is removed, the numbers move to the
// usage table of the stripe, which has all earlier hours. Both are guarded by the mutex of the
// stripe, so that a reader sees each change once. usageHours bounds all tables together.

// hourUse is what was used of a limit in one hour. It is empty if events is 0.
type hourUse struct {
	units  int64
	hour   int32
	events uint32
}

const hourMS = 3_600_000

// hourOf returns the number of hours from the Unix epoch to the hour of an instant.
func hourOf(ms int64) int32 {
	hour := ms / hourMS
	if hour*hourMS > ms {
		hour--
	}
	return int32(hour)
}

// addUse returns a+b, or the closest number that fits 64 bits.
func addUse(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// count counts a change of the usage of the limit at an index of a subject's states.
func (p *stripe) count(it *subjectState, at int32, hour int32, units int64) {
	if units == 0 || p.usage.hours == nil {
		return
	}
	s := &it.states[at]
	if s.use.hour != hour || s.use.events == math.MaxUint32 {
		p.record(it, s)
		s.use = hourUse{hour: hour}
	}
	s.use.units = addUse(s.use.units, units)
	s.use.events++
}

// record moves what a limit's state has counted to the table.
func (p *stripe) record(it *subjectState, s *limitState) {
	if s.use.events == 0 {
		return
	}
	p.usage.add(it.subject, s.name, usageEntry{
		units: s.use.units, events: int64(s.use.events), hour: s.use.hour,
	})
	s.use = hourUse{}
}

// usageTable has the usage of the subjects of a stripe by hour. The mutex of the stripe guards
// it.
type usageTable struct {
	hours    *usageHours // nil if no usage is recorded
	subjects map[weir.Subject]*subjectUsage
	// dense has every element once, so that the sweep and a snapshot can walk them.
	dense   []*subjectUsage
	freezer copyOnWrite[*subjectUsage]
	// names are those of the last subject that got another name.
	names []string
	// cursor is the index in dense at which the sweep continues. trimmed is the horizon at which
	// it ended last.
	cursor  int
	trimmed int64
	// peak is the largest number of subjects since the map was made.
	peak int
}

// subjectUsage has the usage of one subject.
type subjectUsage struct {
	subject weir.Subject
	// limits are the names to which the entries refer. The slice is never modified, and most
	// subjects share it.
	limits []string
	// entries are sorted by hour and then by limit.
	entries []usageEntry
	// index and epoch are as in [subjectState].
	index int32
	epoch uint32
}

// usageEntry is what was used of a limit in one hour. It has no pointers, so that the garbage
// collector does not scan entries.
type usageEntry struct {
	units, events int64
	hour          int32
	limit         int32 // index of the name
}

func compareEntries(a, b usageEntry) int {
	return cmp.Or(cmp.Compare(a.hour, b.hour), cmp.Compare(a.limit, b.limit))
}

// add adds an entry, whose limit is set here, and drops what is then too old. Entries of hours
// that have been dropped are lost.
func (t *usageTable) add(of weir.Subject, limit string, e usageEntry) {
	if t.insert(of, limit, e) {
		t.hours.expire(int64(e.hour))
	}
}

// insert is add without dropping what is too old. It reports whether the entry is a new one.
func (t *usageTable) insert(of weir.Subject, limit string, e usageEntry) bool {
	if int64(e.hour) < t.hours.horizon.Load() {
		return false
	}
	u := t.subjects[of]
	if u == nil {
		u = &subjectUsage{subject: of, index: int32(len(t.dense)), epoch: t.freezer.epoch}
		if t.subjects == nil {
			t.subjects = make(map[weir.Subject]*subjectUsage)
		}
		t.subjects[of] = u
		t.dense = append(t.dense, u)
		t.peak = max(t.peak, len(t.dense))
	}
	t.preserve(u)
	at := slices.Index(u.limits, limit)
	if at < 0 {
		at = len(u.limits)
		u.limits = t.named(append(u.limits[:at:at], limit))
	}
	e.limit = int32(at)
	i, found := slices.BinarySearchFunc(u.entries, e, compareEntries)
	if found {
		u.entries[i].units = addUse(u.entries[i].units, e.units)
		u.entries[i].events = addUse(u.entries[i].events, e.events)
		return false
	}
	u.entries = slices.Insert(u.entries, i, e)
	t.hours.added(int64(e.hour))
	return true
}

// named returns a slice with the given names, the same one as before if it can.
func (t *usageTable) named(names []string) []string {
	if n := len(names); len(t.names) >= n && slices.Equal(t.names[:n], names) {
		return t.names[:n:n]
	}
	t.names = names
	return names
}

// preserve copies an element that is about to change or to move, if the snapshot still needs it.
func (t *usageTable) preserve(u *subjectUsage) {
	if t.freezer.due(&u.epoch) {
		t.freezer.preserved = append(t.freezer.preserved, &subjectUsage{
			subject: u.subject, limits: u.limits, entries: slices.Clone(u.entries),
		})
	}
}

// sweep removes the entries of dropped hours from no more than most subjects. It returns the
// number of subjects that it looked at, and whether it has reached the end.
func (t *usageTable) sweep(most int) (n int, done bool) {
	if t.hours == nil {
		return 0, true
	}
	horizon := t.hours.horizon.Load()
	if t.cursor == 0 && t.trimmed == horizon {
		return 0, true
	}
	for ; n < most && t.cursor < len(t.dense); n++ {
		if u := t.dense[t.cursor]; int64(u.entries[0].hour) < horizon {
			t.preserve(u)
			if t.trim(u, horizon); len(u.entries) == 0 {
				t.remove(u) // the last one moves to this index, so the cursor stays
				continue
			}
		}
		t.cursor++
	}
	if t.cursor < len(t.dense) {
		return n, false
	}
	t.cursor, t.trimmed = 0, horizon
	t.shrink()
	return n, true
}

// trim removes the entries of hours before a horizon, and the names that no entry has any more.
func (t *usageTable) trim(u *subjectUsage, horizon int64) {
	first, _ := slices.BinarySearchFunc(u.entries, horizon,
		func(e usageEntry, horizon int64) int { return cmp.Compare(int64(e.hour), horizon) })
	left := slices.Clone(u.entries[first:]) // frees the memory of the others
	moved := make([]int32, len(u.limits))   // 1 + the new index of each name
	names := make([]string, 0, len(u.limits))
	for at := range u.limits { // in order, so that the entries stay sorted
		if slices.ContainsFunc(left, func(e usageEntry) bool { return e.limit == int32(at) }) {
			names = append(names, u.limits[at])
			moved[at] = int32(len(names))
		}
	}
	for i := range left {
		left[i].limit = moved[left[i].limit] - 1
	}
	u.limits, u.entries = t.named(names), left
}

// remove removes an element. The last one in dense moves to its index.
func (t *usageTable) remove(u *subjectUsage) {
	last := len(t.dense) - 1
	t.preserve(t.dense[last]) // a snapshot may have passed the index that it moves to
	delete(t.subjects, u.subject)
	t.dense[u.index] = t.dense[last]
	t.dense[u.index].index = u.index
	t.dense[last] = nil
	t.dense = t.dense[:last]
}

// shrink reallocates the map and dense if they are mostly empty, as [stripe.shrink] does.
func (t *usageTable) shrink() {
	const small = 64
	if t.peak <= small || len(t.dense) > t.peak/4 {
		return
	}
	t.subjects = make(map[weir.Subject]*subjectUsage, len(t.dense))
	for _, u := range t.dense {
		t.subjects[u.subject] = u
	}
	t.dense = append(make([]*subjectUsage, 0, len(t.dense)), t.dense...)
	t.peak = len(t.dense)
}
