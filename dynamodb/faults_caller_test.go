package dynamodb

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// faultCaller is one caller of one process. It has leases of its own.
type faultCaller struct {
	side     *faultSide
	account  *faultAccount
	clock    *faultClock
	random   *rand.Rand
	entities []string
	leases   []*faultLease
	retries  []*weir.Request
	counts   map[string]int // of outcomes
	inTable  bool           // leases are kept in the table
	// forsaken are the IDs of reservations that had no answer, or a degraded lease, and were not
	// admitted since. The table may have them.
	forsaken []weir.LeaseID
}

// patience returns the time for which a caller waits for an answer. Most wait for as long as it
// takes, on a busy machine too. Some leave before the answer, and some when it is delayed.
func (c *faultCaller) patience() time.Duration {
	switch c.random.IntN(20) {
	case 0:
		return time.Duration(1+c.random.IntN(30)) * time.Millisecond
	case 1:
		return faultHold * 2 / 3
	}
	return time.Minute
}

// maxLeases is the largest number of live leases of a caller.
const maxLeases = 12

// step makes one call.
func (c *faultCaller) step(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), c.patience())
	defer cancel()
	switch n := c.random.IntN(100); {
	case n < 4:
		c.look(ctx, t)
	case n < 60 && len(c.leases) < maxLeases || len(c.leases) == 0:
		c.reserve(ctx, t, c.request())
	default:
		l := c.leases[c.random.IntN(len(c.leases))]
		c.settle(ctx, t, l, c.verb(l))
	}
}

// look asks for the status of everything of an entity, which takes several pages.
func (c *faultCaller) look(ctx context.Context, t *testing.T) {
	t.Helper()
	_, err := c.side.limiter.Status(ctx, c.entities[c.random.IntN(len(c.entities))], "")
	if err != nil && !errors.Is(err, weir.Unavailable) {
		t.Errorf("status: %v", err)
	}
	c.count("status", err)
}

func (c *faultCaller) count(what string, err error) {
	if err != nil {
		what += " unavailable"
	}
	c.counts[what]++
}

// request returns a new request, or one whose answer was lost.
func (c *faultCaller) request() *weir.Request {
	if len(c.retries) > 0 && c.random.IntN(2) == 0 {
		r := c.retries[0]
		c.retries = c.retries[1:]
		return r
	}
	r := &weir.Request{LeaseID: weir.NewLeaseID(c.clock.now())}
	charges := 1
	if c.random.IntN(10) == 0 {
		charges = 2
	}
	for _, i := range c.random.Perm(len(c.entities))[:charges] {
		costs := weir.Costs{"rpm": int64(1 + c.random.IntN(3))}
		if c.random.IntN(5) > 0 {
			costs["tok.in-1"] = int64(50 * c.random.IntN(5))
		}
		r.Charges = append(r.Charges, weir.Charge{
			Entity: c.entities[i], Resource: faultResource, Costs: costs,
		})
	}
	return r
}

func (c *faultCaller) reserve(ctx context.Context, t *testing.T, r *weir.Request) {
	t.Helper()
	stands := c.account.standings(r.Charges)
	lease, err := c.side.limiter.Reserve(ctx, r)
	denied, isDenied := errors.AsType[*weir.DeniedError](err)
	switch {
	case err == nil:
		l := &faultLease{id: lease.ID, charges: r.Charges, degraded: lease.Degraded}
		c.leases = append(c.leases, l)
		if l.degraded {
			c.forsaken = append(c.forsaken, l.id)
			c.counts["reserve degraded"]++
			return
		}
		c.forsaken = slices.DeleteFunc(c.forsaken, func(id weir.LeaseID) bool { return id == l.id })
		l.stands, l.least = stands, c.account.standings(r.Charges)
		c.account.admit(stands, lease.ReservedAt.Before(c.clock.now()))
		c.counts["admitted"]++
	case isDenied && denied.Contended:
		c.counts["contended"]++
	case isDenied:
		c.account.deny(stands)
		c.counts["denied"]++
	case errors.Is(err, weir.Unavailable):
		c.counts["reserve unavailable"]++
		c.forsaken = append(c.forsaken, r.LeaseID)
		if c.random.IntN(4) > 0 { // one in four gives up
			c.retries = append(c.retries, r)
		}
	default:
		t.Errorf("reserve: %v", err)
	}
}

// verb returns the next verb for a lease: usually the one whose answer was lost.
func (c *faultCaller) verb(l *faultLease) *faultVerb {
	if l.again != nil && c.random.IntN(5) > 0 {
		return l.again
	}
	v := &faultVerb{}
	// An update whose answer was lost may be applied later. What another update does not name would
	// then stay as that one has made it.
	whole := c.inTable && l.again != nil
	switch n := c.random.IntN(10); {
	case n < 3:
		l.seq++
		v.verb, v.seq, v.totals = weir.VerbAdjust, l.seq, c.totals(l, whole)
	case n < 6:
		v.verb, v.totals = weir.VerbComplete, c.totals(l, whole)
	case n < 9:
		v.verb = weir.VerbCancel
	default:
		v.verb = weir.VerbExtend
	}
	return v
}

// totals returns random new totals of a lease, higher or lower: of some limits, or of all.
func (c *faultCaller) totals(l *faultLease, whole bool) []weir.Costs {
	totals := make([]weir.Costs, len(l.charges))
	for i, charge := range l.charges {
		totals[i] = weir.Costs{}
		for name, n := range charge.Costs {
			if c.random.IntN(4) > 0 || whole {
				totals[i][name] = max(0, n+c.random.Int64N(n/2+3)-(n/2+2)+1)
			}
		}
	}
	return totals
}

// settle sends a verb, and reports whether the answer was definite.
func (c *faultCaller) settle(ctx context.Context, t *testing.T, l *faultLease, v *faultVerb) bool {
	t.Helper()
	changes := v.verb != weir.VerbExtend && !l.degraded
	var want map[faultBucketName]int64
	if changes {
		want = l.after(c.account, v)
		c.account.ask(l, want)
	}
	err := c.send(ctx, l, v)
	if c.inTable && (errors.Is(err, weir.Conflict) || errors.Is(err, weir.Ended)) {
		return c.endedBefore(ctx, l)
	}
	c.count(string(v.verb), err)
	if err != nil {
		if !errors.Is(err, weir.Unavailable) {
			t.Errorf("%s of lease %s: %v", v.verb, l.id, err)
		}
		if v.verb != weir.VerbExtend {
			l.again = v
			l.unanswered = append(l.unanswered, v)
		}
		return false
	}
	if v.verb == weir.VerbExtend {
		return true
	}
	if changes {
		c.account.settle(l, want)
		l.settled(v)
	}
	l.again = nil
	if v.verb != weir.VerbAdjust {
		c.leases = slices.DeleteFunc(c.leases, func(other *faultLease) bool { return other == l })
	}
	return true
}

// endedBefore finds out which of the unanswered updates has ended the lease: it is the one whose
// repeat is answered, as the same complete or cancel again.
func (c *faultCaller) endedBefore(ctx context.Context, l *faultLease) bool {
	for _, v := range l.unanswered {
		if v.verb == weir.VerbAdjust {
			continue
		}
		err := c.send(ctx, l, v)
		switch {
		case errors.Is(err, weir.Unavailable):
			l.again = v
			return false
		case err != nil:
			continue
		}
		c.counts["ended before"]++
		c.account.settle(l, l.after(c.account, v))
		l.again = nil
		c.leases = slices.DeleteFunc(c.leases, func(other *faultLease) bool { return other == l })
		return true
	}
	l.again = nil
	l.nobody = true
	return false
}

func (c *faultCaller) send(ctx context.Context, l *faultLease, v *faultVerb) error {
	var err error
	switch v.verb {
	case weir.VerbAdjust:
		_, err = c.side.limiter.Adjust(ctx, l.id, v.seq, v.totals)
	case weir.VerbComplete:
		_, err = c.side.limiter.Complete(ctx, l.id, v.totals)
	case weir.VerbCancel:
		_, err = c.side.limiter.Cancel(ctx, l.id)
	default:
		_, err = c.side.limiter.Extend(ctx, l.id)
	}
	return err
}

// resolve repeats the calls whose answers were lost until they are answered. There are no more
// faults.
func (c *faultCaller) resolve(t *testing.T) {
	t.Helper()
	for _, l := range slices.Clone(c.leases) {
		for range 20 {
			if l.again == nil || c.settle(t.Context(), t, l, l.again) {
				break
			}
		}
		if l.again != nil {
			t.Errorf("%s of lease %s does not get through", l.again.verb, l.id)
		}
		if l.nobody {
			t.Errorf("lease %s has ended, and by none of its updates", l.id)
		}
	}
}
