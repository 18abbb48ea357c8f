package aggregator

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// Writes counts the writes of bucket items by the second in which they were made, over batches. It
// belongs to one shard of the stream, whose batches it is given in order; one that is given again
// counts once. The zero value is ready to use. It must not be used by several goroutines.
//
// It is bounded: after each batch it keeps the 256 items that were written last, of those in the
// same second the busiest ones. That forgets no hot item, because a partition of a table takes 1,000
// writes a second: beside an item with 800 there are at most 200 others. As JSON it has less than
// 50 KB.
type Writes struct {
	items map[itemHash]*written
}

// maxWritten is the number of items that are kept from one batch to the next.
const maxWritten = 256

// itemHash identifies an item. It is shorter than a key, which may have 400 bytes.
type itemHash [16]byte

// written is what is known of the writes of one item.
type written struct {
	// shards is the shard count of the item. A write with another count begins anew.
	shards int
	// since is the second in which this count was first seen, in Unix time.
	since int64
	// second is the second of the last write, and n the number of writes in it.
	second, n int64
	// last is the position of the last write.
	last Position
}

// Due counts the writes in a batch of records. It returns the buckets to double: those of which an
// item had a number of writes, hot, in one second, and that may be split by that item. A second
// that is more than a minute before now asks for nothing, because the bucket may be idle by now, and
// shards are never merged.
//
// Right after a doubling, the item is as busy as before. So only writes with the same shard count
// are added up, and a count of several is judged by no second that began less than
// [sharding.SpreadMS] after the count was first seen. Any shard of a bucket may ask.
func (w *Writes) Due(records []*Record, hot int, now time.Time) []Doubling {
	var due []Doubling
	for _, r := range records {
		id, shards, ok := bucketWrite(r)
		age := now.Sub(r.At.Truncate(time.Second))
		if !ok || age < -freshFor {
			continue
		}
		if !w.add(r, shards, int64(hot)) || age > freshFor {
			continue
		}
		id.Shard = 0
		d := Doubling{Bucket: id, From: shards, To: 2 * shards}
		b, err := schema.ParseBucket(r.New)
		if err == nil && sharding.MaySplit(b, d.To) && !slices.Contains(due, d) {
			due = append(due, d)
		}
	}
	w.trim()
	return due
}

// freshFor is the time for which a busy second asks to double.
const freshFor = time.Minute

// add counts a record. It reports whether it is the one with which its second becomes hot, and the
// second may be judged.
func (w *Writes) add(r *Record, shards int, hot int64) bool {
	hash, second := hashOf(r.Key), r.At.Unix()
	i := w.items[hash]
	if i == nil {
		if w.items == nil {
			w.items = make(map[itemHash]*written)
		}
		i = &written{}
		w.items[hash] = i
	}
	if r.Position <= i.last {
		return false // delivered again
	}
	i.last = r.Position
	if i.shards != shards {
		i.shards, i.since, i.second, i.n = shards, second, second, 0
	}
	switch {
	case second > i.second:
		i.second, i.n = second, 0
	case second < i.second:
		return false // times may go back a little at the turn of a second
	}
	i.n++
	return i.n == hot && (shards == 1 || i.known() >= sharding.SpreadMS)
}

// known returns how many milliseconds before the beginning of the last second the shard count was
// first seen, at least. It may have been at the end of the second in which it was.
func (i *written) known() int64 { return (i.second - i.since - 1) * 1000 }

func hashOf(k schema.Key) itemHash {
	sum := sha256.Sum256([]byte(k.PK))
	return itemHash(sum[:len(itemHash{})])
}

// trim forgets the items that were not written lately.
func (w *Writes) trim() {
	if len(w.items) <= maxWritten {
		return
	}
	for _, hash := range w.sorted()[maxWritten:] {
		delete(w.items, hash)
	}
}

// sorted returns the items, those that were written last first, and the busier of two.
func (w *Writes) sorted() []itemHash {
	hashes := make([]itemHash, 0, len(w.items))
	for hash := range w.items {
		hashes = append(hashes, hash)
	}
	slices.SortFunc(hashes, func(a, b itemHash) int {
		x, y := w.items[a], w.items[b]
		return cmp.Or(cmp.Compare(y.second, x.second), cmp.Compare(y.n, x.n),
			slices.Compare(a[:], b[:]))
	})
	return hashes
}

// writtenJSON is an item as Writes encodes it.
type writtenJSON struct {
	Item   string   `json:"i"`
	Shards int      `json:"c"`
	Since  int64    `json:"f"`
	Second int64    `json:"s"`
	N      int64    `json:"n"`
	Last   Position `json:"p"`
}

// MarshalJSON encodes the counts, so that another process can continue them.
func (w *Writes) MarshalJSON() ([]byte, error) {
	list := make([]writtenJSON, 0, len(w.items))
	for _, hash := range w.sorted() {
		i := w.items[hash]
		list = append(list, writtenJSON{
			Item: base64.RawURLEncoding.EncodeToString(hash[:]), Shards: i.shards, Since: i.since,
			Second: i.second, N: i.n, Last: i.last,
		})
	}
	return json.Marshal(list)
}

// UnmarshalJSON decodes what [Writes.MarshalJSON] encodes. If it returns an error, w is unchanged.
func (w *Writes) UnmarshalJSON(text []byte) error {
	var list []writtenJSON
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("the counts of writes: %w", err)
	}
	items := make(map[itemHash]*written, len(list))
	for _, i := range list {
		hash, err := base64.RawURLEncoding.DecodeString(i.Item)
		if err != nil || len(hash) != len(itemHash{}) || i.Shards < 1 || i.N < 0 {
			return fmt.Errorf("the counts of writes: item %.64q is malformed", i.Item)
		}
		items[itemHash(hash)] = &written{i.Shards, i.Since, i.Second, i.N, i.Last}
	}
	w.items = items
	w.trim()
	return nil
}
