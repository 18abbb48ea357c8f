package limiter

import (
	"github.com/weir-limiter/weir"

	"github.com/weir-limiter/weir/driver"
)

// leaseEntry is what the limiter knows of a lease that has not ended. Between acquire and release
// it belongs to the caller; what follows busy belongs to the shard. An ended lease is handed out as
// an entry too, but one that is the caller's alone.
type leaseEntry struct {
	id          weir.LeaseID
	caller      *callerQuota // who reserved it
	counted     bool         // as a live lease
	state       leasePhase
	degraded    bool
	inDoubt     bool // something that was given back may still be charged
	charges     uint8
	fingerprint uint64 // of the request
	// at, expires, seqAt and endedAt are in milliseconds.
	at, expires           int64
	seq, seqAt            int64
	endedAt               int64
	endedAs               uint64   // the fingerprint of what was named then
	keys                  []uint64 // of the charges; nil if the request was not keyed
	holdings              []driver.Holding
	limits                []weir.LimitStatus
	holdingBuf            [1]driver.Holding // memory for holdings, as one is the most usual number
	partBuf               [1]driver.Part
	definitionsUntil      int64 // when the definitions in holdings have to be looked up again, in milliseconds
	definitionsGeneration int64 // the generation of the cache that they are from

	busy       bool
	detached   bool          // made for one caller, in no shard
	ref        leaseRef      // its slot
	wait       chan struct{} // closed on release; nil while nobody waits
	list       *leaseList
	prev, next *leaseEntry
	due        int64 // when it expires, as filed in a live list
	sequence   int64 // of those due in one millisecond, the one filed last expires last
}

// leasePhase is what is known of a lease.
type leasePhase uint8

const (
	leasePending leasePhase = iota // nothing was reserved
	leaseLive
	leaseCompleted
	leaseCancelled
	leaseExpired
	leaseVoided // it was cancelled before it was reserved
)

// ended is true for leases that are over.
func (c leasePhase) ended() bool { return c > leaseLive }

// state is the word for it.
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

// activate fills a pending entry.
func (e *leaseEntry) activate(r *driver.LeaseRecord) {
	e.fingerprint, e.charges = r.Fingerprint, uint8(r.Charges)
	e.at, e.expires = r.At.UnixMilli(), r.Expires.UnixMilli()
	e.seq, e.seqAt = r.Seq, r.SeqAt.UnixMilli()
	e.keys, e.holdings, e.limits = r.Keys, r.Holdings, r.Limits
	if e.state = phaseOf(r.State); e.state.ended() {
		e.endedAs = r.EndFingerprint
		e.end(e.state, r.EndedAt.UnixMilli())
	}
}

// end makes a lease an ended one, which holds nothing.
func (e *leaseEntry) end(as leasePhase, atMS int64) {
	e.state, e.endedAt = as, atMS
	e.keys, e.holdings, e.limits = nil, e.holdings[:0], nil
}

// leaseList is a list of entries in the order in which they are due, linked through them:
// [container/list] would allocate an element for each reservation and each extend.
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
