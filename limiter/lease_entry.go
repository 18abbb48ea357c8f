package limiter

import (
	"time"

	"github.com/weir-limiter/weir"

	"github.com/weir-limiter/weir/driver"
)

// leaseEntry is a pending or live lease in the lease table. The fields before busy belong to the
// call that has acquired the entry, until it releases it. The fields from busy on are guarded by
// the mutex of the entry's segment. An ended lease is returned as an entry too, but as a copy that
// only the caller has.
type leaseEntry struct {
	id          weir.LeaseID
	caller      *callerQuota // whose quota the lease counts for
	counted     bool         // in caller, as a live lease
	state       leasePhase
	degraded    bool
	inDoubt     bool // units that it gave back may still be charged
	charges     uint8
	version     uint64 // of the store's record
	fingerprint uint64 // of the request
	// at, expires, seqAt and endedAt are in milliseconds.
	at, expires           int64
	seq, seqAt            int64
	endedAt               int64
	endedAs               uint64   // fingerprint of the actuals of complete
	keys                  []uint64 // of the charges; nil if the request was not keyed
	holdings              []driver.Holding
	limits                []weir.LimitStatus
	holdingBuf            [1]driver.Holding // memory of holdings: most leases have one
	partBuf               [1]driver.Part
	definitionsUntil      int64 // in milliseconds: when to look up the definitions in holdings again
	definitionsGeneration int64 // cache generation of those definitions

	busy       bool
	detached   bool          // a copy that is in no segment
	ref        leaseRef      // its place in the segment
	wait       chan struct{} // closed on release; nil while no call waits
	list       *leaseList
	prev, next *leaseEntry
	due        int64 // expires, as of when the entry was filed in a list
	sequence   int64 // orders entries that are due in the same millisecond
}

// leasePhase is the state of a lease in this process: [driver.LeaseState], and leasePending.
type leasePhase uint8

const (
	leasePending leasePhase = iota // nothing is reserved
	leaseLive
	leaseCompleted
	leaseCancelled
	leaseExpired
	leaseVoided // cancelled before it was reserved
)

// ended reports whether the lease has ended.
func (c leasePhase) ended() bool { return c > leaseLive }

// state returns the [driver.LeaseState] of a lease that is not pending.
func (c leasePhase) state() driver.LeaseState {
	switch c {
	case leaseCompleted:
		return driver.LeaseCompleted
	case leaseCancelled:
		return driver.LeaseCancelled
	case leaseExpired:
		return driver.LeaseExpired
	case leaseVoided:
		return driver.LeaseVoided
	default:
		return driver.LeaseLive
	}
}

func phaseOf(s driver.LeaseState) leasePhase {
	switch s {
	case driver.LeaseCompleted:
		return leaseCompleted
	case driver.LeaseCancelled:
		return leaseCancelled
	case driver.LeaseExpired:
		return leaseExpired
	case driver.LeaseVoided:
		return leaseVoided
	default:
		return leaseLive
	}
}

// activate fills an entry from a record.
func (e *leaseEntry) activate(r *driver.LeaseRecord) {
	e.version, e.fingerprint, e.charges = r.Version, r.Fingerprint, uint8(r.Charges)
	e.at, e.expires = r.At.UnixMilli(), r.Expires.UnixMilli()
	e.seq, e.seqAt = r.Seq, r.SeqAt.UnixMilli()
	e.keys, e.holdings, e.limits = r.Keys, r.Holdings, r.Limits
	if e.state = phaseOf(r.State); e.state.ended() {
		e.endedAs = r.EndFingerprint
		e.end(e.state, r.EndedAt.UnixMilli())
	}
}

// record returns what is known of a live lease, without its holdings and limits.
func (e *leaseEntry) record() driver.LeaseRecord {
	return driver.LeaseRecord{
		ID: e.id, Version: e.version, State: e.state.state(), Fingerprint: e.fingerprint,
		At: time.UnixMilli(e.at), Expires: time.UnixMilli(e.expires), Charges: int(e.charges), Keys: e.keys,
		Seq: e.seq, SeqAt: time.UnixMilli(e.seqAt),
	}
}

// end makes the lease an ended one that stands for nothing. It keeps the memory of the holdings.
func (e *leaseEntry) end(as leasePhase, atMS int64) {
	e.state, e.endedAt = as, atMS
	e.keys, e.holdings, e.limits = nil, e.holdings[:0], nil
}

// leaseList is a doubly linked list of entries in the order in which they are due. It is linked
// through the entries themselves, because [container/list] would allocate an element for each
// reservation and each extend.
type leaseList struct {
	head, tail *leaseEntry
	len        int
}

func (l *leaseList) push(e *leaseEntry) {
	e.list, e.prev, e.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.len++
}

func (l *leaseList) remove(e *leaseEntry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.list, e.prev, e.next = nil, nil, nil
	l.len--
}
