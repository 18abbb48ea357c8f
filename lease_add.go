package weir

import (
	"context"
	"maps"
	"math"
	"strings"
)

// Add changes what the lease stands for by deltas, which may be negative, for a caller that does
// not know the totals of [Lease.Adjust]. The lease keeps the totals: it adds to what was reserved,
// or to the last adjust through this lease, and sends an adjust with the sums. Concurrent calls of
// Add and Adjust wait for one another.
//
// If the outcome is unknown ([Unavailable]) or the service is [Overloaded], the lease keeps the
// deltas and sends them before those of the next Add, which may be nil, and before a Complete that
// does not name their limits. So do not add them again. After any other error they are not added;
// if the service refuses deltas that were kept, they are dropped.
//
// A sum below zero or above 64 bits is [Invalid], and so is a limit for which the lease does not
// know what it stands for: one that was not reserved, any limit after a reservation that was
// repeated and adjusted in between ([Lease.Seq]), or whose last Adjust had an unknown outcome, and
// a full name (see [Request.Keyed]). An Adjust that names the limit makes it known.
func (l *Lease) Add(ctx context.Context, deltas Costs) (*Receipt, error) {
	n := l.remember()
	n.turn.Lock()
	defer n.turn.Unlock()
	if l.Degraded { // nothing is counted
		return l.adjust(ctx, nil)
	}
	sums, err := l.sums(n, deltas)
	if err != nil {
		return nil, err
	}
	receipt, err := l.sendKept(ctx, n, n.kept)
	if err == nil && (len(deltas) > 0 || receipt == nil) {
		receipt, err = l.adjust(ctx, []Costs{sums})
		if err == nil {
			n.known(sums)
		}
	}
	if err != nil && mayRepeat(err) {
		n.keep(sums)
	}
	return receipt, err
}

// adjust sends an adjust with the next sequence number.
func (l *Lease) adjust(ctx context.Context, totals []Costs) (*Receipt, error) {
	return l.service.Adjust(ctx, l.ID, l.seq.Add(1), totals)
}

// sendKept sends totals that were kept, if there are any. If the service refuses them, they are
// dropped.
func (l *Lease) sendKept(ctx context.Context, n *leaseNotes, totals Costs) (*Receipt, error) {
	if len(totals) == 0 {
		return nil, nil
	}
	totals = maps.Clone(totals)
	receipt, err := l.adjust(ctx, []Costs{totals})
	if err != nil && mayRepeat(err) {
		return nil, err
	}
	maps.DeleteFunc(n.kept, func(name string, _ int64) bool { _, sent := totals[name]; return sent })
	if err == nil {
		n.known(totals)
	}
	return receipt, err
}

// sendUnnamed sends the totals that were kept of the limits that actuals do not name.
func (l *Lease) sendUnnamed(ctx context.Context, actuals []Costs) error {
	n := l.notes.Load()
	if n == nil {
		return nil
	}
	n.turn.Lock()
	defer n.turn.Unlock()
	unnamed := maps.Clone(n.kept)
	for _, c := range actuals {
		for name := range c {
			maps.DeleteFunc(unnamed, func(k string, _ int64) bool { return sameLimit(k, name) })
		}
	}
	_, err := l.sendKept(ctx, n, unnamed)
	return err
}

// sums returns what the lease will stand for on each limit that deltas name.
func (l *Lease) sums(n *leaseNotes, deltas Costs) (Costs, error) {
	sums := make(Costs, len(deltas))
	for name, d := range deltas {
		is, known := l.standsFor(n, name)
		switch {
		case !known:
			return nil, invalid("deltas."+name, d,
				"is of a limit for which this lease does not know what it stands for: use Adjust")
		case d > 0 && is > math.MaxInt64-d:
			return nil, invalid("deltas."+name, d, "makes a sum that does not fit in 64 bits")
		case is+d < 0:
			return nil, invalid("deltas."+name, d, "makes a sum below zero")
		}
		sums[name] = is + d
	}
	return sums, nil
}

// unknownTotal is the total of a limit whose last adjust has an unknown outcome.
const unknownTotal = -1

// standsFor returns the units of a limit for which the lease stands with the deltas that were kept,
// and whether they are known.
func (l *Lease) standsFor(n *leaseNotes, name string) (int64, bool) {
	for _, totals := range []Costs{n.kept, n.totals} {
		if is, ok := totals[name]; ok {
			return is, is != unknownTotal
		}
		for other := range totals {
			if sameLimit(other, name) { // its total changes under the other name
				return 0, false
			}
		}
	}
	if l.Seq != 0 {
		return 0, false
	}
	// A name without a subject is of one charge, or the service refuses it. So all statuses with this
	// name, which are of the entity and its ancestors, are of the same cost.
	for i := range l.Limits {
		if l.Limits[i].Limit == name {
			return l.Limits[i].Requested, true
		}
	}
	return 0, false
}

// sameLimit reports whether two names in totals may be of the same limit: they are equal, or one is
// the end of the other, a full name.
func sameLimit(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	return a == b || strings.HasSuffix(a, string(NameSeparator)+b)
}

// known records totals that the service has applied.
func (n *leaseNotes) known(totals Costs) {
	if n.totals == nil {
		n.totals = make(Costs, len(totals))
	}
	maps.Copy(n.totals, totals)
}

// keep records totals to send later.
func (n *leaseNotes) keep(totals Costs) {
	if n.kept == nil {
		n.kept = make(Costs, len(totals))
	}
	maps.Copy(n.kept, totals)
}

// adjusted records the totals of an Adjust, which replace what was known and kept of their limits.
// (A name in several sets is of several charges, and the service refuses it in an Add.)
func (n *leaseNotes) adjusted(sets []Costs, err error) {
	if err != nil && !mayRepeat(err) {
		return
	}
	now := Costs{}
	for _, c := range sets {
		for name, units := range c {
			if err != nil {
				units = unknownTotal
			}
			now[name] = units
		}
	}
	for name := range now {
		same := func(other string, _ int64) bool { return sameLimit(other, name) }
		maps.DeleteFunc(n.totals, same)
		maps.DeleteFunc(n.kept, same)
	}
	n.known(now)
}
