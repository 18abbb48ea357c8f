// Package leaseid makes lease IDs in rows of eight, for stores that keep the leases of a row
// together.
package leaseid

import (
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// RowSize is the number of IDs in a row.
const RowSize = 8

// last is the byte of an ID whose low bits number the IDs of a row.
const last = len(weir.LeaseID{}) - 1

// maxApartMS is by how much the time in a row's IDs may differ from the time of a call, in
// milliseconds. A store saves a write only if leases of a row are reserved together, so that it
// records them together. Ten milliseconds are about as long as a group of writes takes. A longer
// time would save nothing, and the times in the IDs would be less exact.
const maxApartMS = 10

// Rows makes lease IDs in rows. The IDs of a row differ only in the last three bits, which count
// from 0 to 7; the time and the other bits are those of one [weir.NewLeaseID]. A row ends when its
// IDs are used up, or when its time is more than ten milliseconds before or after the time of a
// call. The zero value is ready for use. All methods may be called concurrently.
//
// Anyone who knows an ID can guess the others of its row, but no ID of another row. So each caller
// whose leases others must not settle needs a Rows of its own.
type Rows struct {
	mu   sync.Mutex   // guards the fields below; nothing waits while it is locked
	row  weir.LeaseID // the first ID of the row
	used int          // IDs of the row that Next has returned
}

// Next returns a new ID for an attempt at now.
func (r *Rows) Next(now time.Time) weir.LeaseID {
	ms := now.UnixMilli()
	r.mu.Lock()
	defer r.mu.Unlock()
	apart := ms - r.row.UnixMilli()
	if r.row.IsZero() || r.used == RowSize || apart > maxApartMS || apart < -maxApartMS {
		r.row, r.used = weir.NewLeaseID(now), 0
		r.row[last] &^= RowSize - 1
	}
	id := r.row
	id[last] |= byte(r.used)
	r.used++
	return id
}
