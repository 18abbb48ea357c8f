package memory

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// The defaults of the options.
const (
	usageDaysByDefault    = 31
	usageEntriesByDefault = 1_000_000
	hoursPerDay           = 24
)

// maxLost bounds the list of times that were lost when a process was killed.
const maxLost = 100

// noTime is an instant that is not known, in milliseconds.
const noTime = math.MinInt64

// usageHours bounds the usage tables of all stripes together and knows for which times usage may
// be missing. A call needs it only if its hour is another one than that of the call before on the
// same limit, and a few times a second to say what time it is.
type usageHours struct {
	// hours and most are the bounds: the number of hours, counted back from the latest, and of
	// entries.
	hours int64
	most  int
	// horizon is the first hour that was not dropped; MinInt64 if none was. The tables remove
	// what is before it when they are swept.
	horizon atomic.Int64

	// mu guards all that follows. It may be locked while a stripe is locked.
	mu sync.Mutex
	// counts has the number of entries of each hour from the horizon on, in order. kept is the
	// sum.
	counts []hourCount
	kept   int
	// began is when the record began: the time of its first call. latest is about the time of the
	// latest call, never after it.
	began, latest int64
	// lost are the times after which a process ended without a snapshot, in order.
	lost []lostTime
}

// hourCount is the number of entries of an hour.
type hourCount struct {
	hour    int64
	entries int
}

// lostTime is a time in milliseconds. to is noTime until the first call after it.
type lostTime struct{ from, to int64 }

func newUsageHours(days, entries int) *usageHours {
	h := &usageHours{hours: int64(days) * hoursPerDay, most: entries, began: noTime, latest: noTime}
	h.horizon.Store(math.MinInt64)
	return h
}

// added counts a new entry of an hour, and drops the oldest hours if there are too many entries.
// An hour is dropped as a whole, so that there is an instant since which nothing is missing.
func (h *usageHours) added(hour int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, found := slices.BinarySearchFunc(h.counts, hour,
		func(c hourCount, hour int64) int { return cmp.Compare(c.hour, hour) })
	if !found {
		h.counts = slices.Insert(h.counts, i, hourCount{hour: hour})
	}
	h.counts[i].entries++
	h.kept++
	for h.kept > h.most {
		h.drop()
	}
}

// expire drops the hours that are too old in a given hour. The latest hour that was ever seen
// does not count: after a call by a clock that was far ahead, the hours that follow would be
// dropped.
func (h *usageHours) expire(hour int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.counts) > 0 && h.counts[0].hour <= hour-h.hours {
		h.drop()
	}
}

// drop drops the oldest hour. That may be one that was dropped before, because an entry was added
// meanwhile; the horizon never goes back.
func (h *usageHours) drop() {
	h.kept -= h.counts[0].entries
	h.horizon.Store(max(h.horizon.Load(), h.counts[0].hour+1))
	h.counts = slices.Delete(h.counts, 0, 1)
}

// batch returns the end of the hours from a first one on that have about most entries together,
// or last if that is less. It is at least one hour after first.
func (h *usageHours) batch(first, last int64, most int) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := 0
	for _, c := range h.counts {
		if c.hour < first {
			continue
		}
		if sum += c.entries; sum > most && c.hour > first {
			return min(c.hour, last)
		}
	}
	return last
}

// saw says that a call was made at now.
func (h *usageHours) saw(now int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = max(h.latest, now)
	if h.began == noTime {
		h.began = now
	}
	if last := len(h.lost) - 1; last >= 0 && h.lost[last].to == noTime {
		from := h.lost[last].from
		h.lost[last] = lostTime{min(from, now), max(from, now)}
	}
}

// lose says that a process ended without a snapshot, the last of which was made at from.
func (h *usageHours) lose(from int64) {
	if last := len(h.lost) - 1; last >= 0 && h.lost[last].to == noTime {
		return // no call was made since
	}
	h.lost = append(h.lost, lostTime{from, noTime})
	if len(h.lost) > maxLost {
		h.lost[1].from = h.lost[0].from
		h.lost = slices.Delete(h.lost, 0, 1)
	}
}

// gaps returns the times for which usage may be missing, as of now.
func (h *usageHours) gaps(now int64) []weir.UsageGap {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, reason := h.began, "the record of usage began at the end of this time"
	if since == noTime {
		since = now
	}
	if horizon := h.horizon.Load(); horizon > int64(hourOf(since)) {
		since, reason = horizon*hourMS, "older hours were dropped"
	}
	gaps := []weir.UsageGap{{To: timeAt(since), Reason: reason}}
	for _, l := range h.lost {
		to := l.to
		if to == noTime {
			to = max(now, l.from)
		}
		if to > since {
			gaps = append(gaps, weir.UsageGap{
				From: timeAt(max(l.from, since)), To: timeAt(to),
				Reason: "used after the last snapshot of a process that was killed or still runs",
			})
		}
	}
	return gaps
}

func timeAt(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
