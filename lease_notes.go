package weir

import (
	"errors"
	"maps"
	"sync"
)

// leaseNotes is what the caller's handle on a lease remembers beyond the lease itself. Most leases
// need none.
type leaseNotes struct {
	mu     sync.Mutex // guards report and unanswered
	report *leaseReport
	// unanswered has the actuals of the last Complete that may be repeated; nil if there is none.
	unanswered *[]Costs

	// turn is held during an adjust, and guards the totals below, by the names of their limits.
	turn   sync.Mutex
	totals Costs // of the last adjusts; see unknownTotal
	kept   Costs // of each Add that failed and may be repeated; they are to be sent
}

// leaseReport is what the function that [Lease.Do] runs has said about what it used.
type leaseReport struct {
	actuals []Costs
	nothing bool // give everything back
}

// remember returns the notes of the lease. It makes them if there are none.
func (l *Lease) remember() *leaseNotes {
	if n := l.notes.Load(); n != nil {
		return n
	}
	l.notes.CompareAndSwap(nil, &leaseNotes{})
	return l.notes.Load()
}

func (n *leaseNotes) setReport(r *leaseReport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report = r
}

// lastReport returns the last report, or nil. The notes may be nil.
func (n *leaseNotes) lastReport() *leaseReport {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.report
}

func (n *leaseNotes) setUnanswered(actuals []Costs) {
	actuals = cloneCosts(actuals)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unanswered = &actuals
}

// completion returns the actuals of the last Complete that may be repeated, and whether there is
// one. The notes may be nil.
func (n *leaseNotes) completion() ([]Costs, bool) {
	if n == nil {
		return nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unanswered == nil {
		return nil, false
	}
	return *n.unanswered, true
}

// mayRepeat reports whether a call that failed with err is to be repeated as it was: it may have
// been carried out, or the service had no capacity for it. Every other [*Error] is a refusal, after
// which nothing has changed.
func mayRepeat(err error) bool {
	_, refused := errors.AsType[*Error](err)
	return !refused || errors.Is(err, Unavailable) || errors.Is(err, Overloaded)
}

func cloneCosts(of []Costs) []Costs {
	clones := make([]Costs, len(of))
	for i, c := range of {
		clones[i] = maps.Clone(c)
	}
	return clones
}
