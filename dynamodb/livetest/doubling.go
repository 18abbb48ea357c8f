package livetest

import (
	"strconv"
	"strings"
)

// double makes room: each new shard may begin full, with the others at what they had.
func (h *History) double(r *Record) {
	if len(r.Shards) != 2 || r.Shards[1] <= r.Shards[0] {
		return // somebody else had done it
	}
	h.doubled = append(h.doubled, doubling{
		shards: r.Shards[0], before: r.Before, after: r.After,
		room: h.eras[len(h.eras)-1].limit.Capacity * milli / 2,
	})
}

// doubling is one doubling of a bucket's shards.
type doubling struct {
	shards        int // before
	before, after int64
	room          int64 // milli-units
}

// settleUS is how long after a doubling a writer may still be under way that read what was before
// it.
const settleUS = 1_000_000

// limitRoom says from when on the room of a doubling is gone: when each of the old shards was
// seen to have no more than its share.
func (h *History) limitRoom(records []Record) {
	for _, d := range h.doubled {
		room := effect{d.before, 0, d.room}
		for shard := range d.shards {
			room.after = max(room.after, h.within(records, shard, d.after+settleUS))
		}
		h.less = append(h.less, room)
	}
}

// within is when, from an instant on, Python first read that a shard has no more than its share,
// as it wrote down afterwards.
func (h *History) within(records []Record, shard int, from int64) int64 {
	suffix := h.itemSuffix() + strconv.Itoa(shard)
	for i := range records {
		r := &records[i]
		if r.Kind != Write || r.Before < from || !strings.HasSuffix(r.Item, suffix) {
			continue
		}
		if share, ok := r.Share[h.Limit]; ok && share.Read <= share.Capacity {
			return r.After
		}
	}
	return forever
}

// itemSuffix is how the keys of the bucket's items end, without the shard.
func (h *History) itemSuffix() string {
	return "/BUCKET#" + h.Entity + "#" + h.world.Resource + "#"
}

// Doublings is how often the bucket's shards doubled, and how many milli-units that may have
// made.
func (h *History) Doublings() (n int, room int64) {
	for _, d := range h.doubled {
		room += d.room
	}
	return len(h.doubled), room
}
