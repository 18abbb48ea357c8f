package oracle

// The defaults of the options, in ms.
const (
	leaseLife   = 60 * 60 * 1000
	leaseMemory = 10 * 60 * 1000
)

type leaseState string

const (
	live      leaseState = "live"
	completed leaseState = "completed"
	cancelled leaseState = "cancelled"
	expired   leaseState = "expired"
)

// lease is one admitted reservation.
type lease struct {
	charges   []chargeLine
	parts     []*part
	answer    *answer
	life      int64 // ms from the reservation or the last extend
	expires   int64 // epoch ms
	seq       int64
	settled   leaseState // empty, completed or cancelled
	settledAt int64      // epoch ms
	actuals   []map[string]int64
}

// state is what the lease is at a time, or was when it was forgotten.
func (l *lease) state(at int64) (state leaseState, forgotten bool) {
	switch {
	case l.settled != "":
		return l.settled, at >= l.settledAt+leaseMemory
	case at >= l.expires:
		return expired, at >= l.expires+leaseMemory
	}
	return live, false
}
