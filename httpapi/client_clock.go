package httpapi

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-limiter/weir"
)

// serverClock is how far the server's clock is ahead of the client's, in milliseconds, as far as
// its answers have told. The time in a lease ID is held against the server's clock.
type serverClock struct {
	offset atomic.Int64
}

// learn takes from an admission when the server made it, by its own clock, between two instants
// of the client's. What is known stays unless the admission contradicts it.
func (s *serverClock) learn(at, sent, received time.Time) {
	low, high := at.UnixMilli()-received.UnixMilli(), at.UnixMilli()-sent.UnixMilli()
	if low > high {
		return // the client's clock stepped back meanwhile
	}
	if known := s.offset.Load(); known < low || known > high {
		s.offset.Store(min(max(known, low), high))
	}
}

// leaseID makes an ID at an instant of the client's clock.
func (s *serverClock) leaseID(now time.Time) weir.LeaseID {
	return weir.NewLeaseID(now.Add(time.Duration(s.offset.Load()) * time.Millisecond))
}

// corrections are ways to make an ID by the Date of the answer that refused the one before. A
// Date is cut to the second. The first aims at the end of that second: a server that was opened
// in it refuses IDs from before. The second goes as far ahead as is allowed, for a server whose
// clock has been put back.
var corrections = [...]time.Duration{time.Second, time.Minute}

// correct makes an ID after a refusal; try counts from zero. It returns the zero ID where there
// is no other way to make one.
func (s *serverClock) correct(try int, header http.Header, received time.Time) weir.LeaseID {
	if try >= len(corrections) {
		return weir.LeaseID{}
	}
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return weir.LeaseID{}
	}
	at := date.Add(corrections[try])
	if try == 0 {
		s.offset.Store(at.UnixMilli() - received.UnixMilli())
	}
	return weir.NewLeaseID(at)
}
