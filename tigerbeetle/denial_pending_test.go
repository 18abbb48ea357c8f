//go:build cgo

package tigerbeetle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// TestDenialWaitsForEarlierAttempt checks that a repeat is not denied, from memory or by the
// cluster, while an earlier attempt of its lease is in flight: that attempt would be charged after
// the denial.
func TestDenialWaitsForEarlierAttempt(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"nothing", "another lease", "the lease"} {
		inOutages(t, func(b *outageWorld) {
			l, _ := b.serve()
			r := b.prepare(l)
			if denied == "the lease" {
				all := b.fill(l)
				b.deny(l, r)
				b.cancel(l, all)
			}
			gate := b.hold(l, r)
			all := b.fill(l)
			if denied == "another lease" {
				b.deny(l, unit("s", 1))
			}
			answer := make(chan error, 1)
			go func() {
				_, err := l.Reserve(b.Context(), r)
				answer <- err
			}()
			synctest.Wait()
			b.cancel(l, all)
			close(gate)
			b.checkNothingCharged(l, r, <-answer)
		})
	}
}

// TestDenialEndsAttemptOfAnotherServer checks that a denial by another server uses up the IDs of a
// chain that is still in flight, so that the chain fails, even if the lease was denied a few times
// before.
func TestDenialEndsAttemptOfAnotherServer(t *testing.T) {
	t.Parallel()
	for before := range 4 {
		inOutages(t, func(b *outageWorld) {
			l, _ := b.serve()
			other, _ := b.serve()
			r := b.prepare(l)
			b.prepare(other)
			for range before {
				all := b.fill(other)
				b.deny(other, r)
				time.Sleep(2 * time.Second) // until the denial is no longer remembered
				b.cancel(other, all)
			}
			gate := b.holdAfter(l, r, before) // the chains whose IDs are used up pass
			all := b.fill(other)
			_, err := other.Reserve(b.Context(), r)
			if wasDenied(err) != nil {
				b.Fatalf("on a full limit: got %v, want a denial", err)
			}
			b.cancel(other, all)
			close(gate)
			b.checkNothingCharged(other, r, err)
		})
	}
}

// prepare uses the limit of slots once, so that its accounts exist, and returns a request for one
// slot.
func (b *outageWorld) prepare(l *limiter.Limiter) *weir.Request {
	b.T.Helper()
	if _, err := l.Reserve(b.Context(), unit("s", 0)); err != nil {
		b.Fatal(err)
	}
	r := unit("s", 1)
	r.LeaseID = weir.NewLeaseID(time.Now())
	return r
}

// fill takes all slots.
func (b *outageWorld) fill(l *limiter.Limiter) weir.LeaseID {
	b.T.Helper()
	lease, err := l.Reserve(b.Context(), unit("s", 20))
	if err != nil {
		b.Fatal(err)
	}
	return lease.ID
}

func (b *outageWorld) cancel(l *limiter.Limiter, id weir.LeaseID) {
	b.T.Helper()
	if _, err := l.Cancel(b.Context(), id); err != nil {
		b.Fatal(err)
	}
}

func (b *outageWorld) deny(l *limiter.Limiter, r *weir.Request) {
	b.T.Helper()
	if _, err := l.Reserve(b.Context(), r); wasDenied(err) != nil {
		b.Fatalf("on a full limit: got %v, want a denial", err)
	}
}

func (b *outageWorld) hold(l *limiter.Limiter, r *weir.Request) (gate chan struct{}) {
	b.T.Helper()
	return b.holdAfter(l, r, 0)
}

// holdAfter begins a reservation whose caller leaves. Its first calls pass; the next one is carried
// out once the gate is closed. Calls that are made later pass too.
func (b *outageWorld) holdAfter(
	l *limiter.Limiter, r *weir.Request, passed int,
) (gate chan struct{}) {
	b.T.Helper()
	b.mu.Lock()
	b.pass = passed
	b.mu.Unlock()
	b.down()
	b.leave(l, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	gate, b.back = b.back, nil
	return gate
}

// checkNothingCharged checks what the answer to a repeat says: after a denial nothing is charged,
// neither at once nor later.
func (b *outageWorld) checkNothingCharged(l *limiter.Limiter, r *weir.Request, err error) {
	b.T.Helper()
	want := int64(20)
	if err == nil {
		want = 19
	}
	for range 2 {
		time.Sleep(100 * time.Millisecond)
		if got := left(b.T, l, "s"); got != want {
			b.Errorf("the repeat: %v; %d available, want %d", err, got, want)
		}
		if _, extended := l.Extend(b.Context(), r.LeaseID); (extended == nil) != (err == nil) {
			b.Errorf("the repeat: %v; extend: %v", err, extended)
		}
		time.Sleep(2 * time.Second)
	}
}
