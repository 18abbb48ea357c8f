package livetest

import (
	"strconv"
	"strings"
)

// double adds the room of a doubling: each new shard may begin full while the others keep their
// balances.
func (h *History) double(r *Record) {
	if len(r.Shards) != 2 || r.Shards[1] <= r.Shards[0] {
		return // another process had doubled them already
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

// settleUS is the longest time after a doubling in which a writer may still use what it read
// before.
const settleUS = 1_000_000

// limitRoom sets the end of each doubling's room: the time at which each old shard was seen with no
// more than its share.
func (h *History) limitRoom(records []Record) {
	for _, d := range h.doubled {
		room := effect{d.before, 0, d.room}
		for shard := range d.shards {
			room.after = max(room.after, h.within(records, shard, d.after+settleUS))
		}
		h.less = append(h.less, room)
	}
}

// within returns the first time after from at which Python logged that it had read a shard with no
// more than its share.
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

// itemSuffix returns the end of the keys of the bucket's items, without the shard.
func (h *History) itemSuffix() string {
	return "/BUCKET#" + h.Entity + "#" + h.world.Resource + "#"
}

// Doublings returns the number of doublings, and the milli-units that they may have created.
func (h *History) Doublings() (n int, room int64) {
	for _, d := range h.doubled {
		room += d.room
	}
	return len(h.doubled), room
}
