package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// callersLimiter opens a limiter over a memory store with a limit that admits everything.
func callersLimiter(t *testing.T, o limiter.Options) *limiter.Limiter {
	t.Helper()
	store, err := memory.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Limits = []weir.Limit{{Name: "rpm", Capacity: 1 << 30}}
	l, err := limiter.New(store, &o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// settledAs reserves and cancels under an ID made at a time.
func settledAs(ctx context.Context, t *testing.T, l *limiter.Limiter, at time.Time) *weir.Request {
	t.Helper()
	r := ask()
	r.LeaseID = weir.NewLeaseID(at)
	lease, err := l.Reserve(ctx, r)
	if err == nil {
		_, err = lease.Cancel(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIDsOfOneCallerDoNotAffectOthers checks that a caller that fills the memory of ended leases
// with IDs 58 seconds ahead raises only its own horizon, and that the limiter forgets no lease of
// another caller.
func TestIDsOfOneCallerDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 5_000, soak.Amount(5_000, 1_000_000)} {
		now := leaseEpoch
		l := callersLimiter(t, limiter.Options{LeaseMemorySize: size, Now: func() time.Time { return now }})
		good := weir.ContextWithCaller(t.Context(), "good")
		bad := weir.ContextWithCaller(t.Context(), "bad")
		mine := settledAs(good, t, l, now)
		var first *weir.Request
		flood := 2*size + size/2
		for i := range flood { // rising times, because the caller's horizon rises
			ahead := time.Second + 57*time.Second*time.Duration(i)/time.Duration(flood)
			r := ask()
			r.LeaseID = weir.NewLeaseID(now.Add(ahead))
			if lease, err := l.Reserve(bad, r); err == nil {
				_, _ = lease.Cancel(bad)
			}
			if first == nil {
				first = r
			}
		}
		for range 10 {
			settledAs(good, t, l, now)
		}
		settledAs(t.Context(), t, l, now) // without a caller
		if _, err := l.Reserve(good, mine); !errors.Is(err, weir.Ended) {
			t.Errorf("%d: the other caller's lease: got %v, want that it is remembered", size, err)
		}
		late := ask()
		late.LeaseID = weir.NewLeaseID(now)
		for name, r := range map[string]*weir.Request{"a forgotten ID": first, "the flooder's own horizon": late} {
			_, err := l.Reserve(bad, r)
			checkForgottenEarly(t, name, size, now, err)
		}
		old := ask()
		old.LeaseID = weir.NewLeaseID(now.Add(-time.Hour))
		_, err := l.Reserve(bad, old)
		if e, ok := errors.AsType[*weir.Error](err); !ok || e.Reason != "is too old: whether it was used before is no longer known" {
			t.Errorf("%d: an ID that is too old for anybody: got %v", size, err)
		}
	}
}

// checkForgottenEarly checks the error for an ID that the limiter may have forgotten early: it
// names the bound, and the time from which IDs of the caller are accepted.
func checkForgottenEarly(t *testing.T, name string, size int, now time.Time, err error) {
	t.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Invalid || e.Field != "lease_id" {
		t.Errorf("%d: %s: got %v, want invalid", size, name, err)
		return
	}
	before, after, _ := strings.Cut(e.Reason, " were forgotten early, because ")
	horizon, err := time.Parse(time.RFC3339, strings.TrimPrefix(before, "may have been used before: IDs of this caller from before "))
	want := fmt.Sprintf("only %d ended leases are remembered: use an ID made after that time", size)
	if err != nil || !horizon.After(now) || horizon.After(now.Add(time.Minute)) || after != want {
		t.Errorf("%d: %s: got %q", size, name, e.Reason)
	}
}

var leaseEpoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// wantOverloaded checks that a reservation is refused with a retry-after and the bound.
func wantOverloaded(ctx context.Context, t *testing.T, l *limiter.Limiter, live, most int) {
	t.Helper()
	reason := fmt.Sprintf("this caller has %d live leases, which is the maximum for one caller", live)
	if live == most {
		reason = fmt.Sprintf("all callers together have %d live leases, which is the maximum", live)
	}
	reason += "; nothing was reserved: settle one, or try again later"
	lease, err := l.Reserve(ctx, ask())
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Overloaded || e.RetryAfter <= 0 || e.Reason != reason {
		t.Fatalf("got %v, %v, want overloaded with a retry-after, because %s", lease, err, reason)
	}
}

// TestLiveLeasesAreBounded checks that nothing is reserved above the bounds, that known leases are
// still answered, and that a lease that is settled or has expired makes room.
func TestLiveLeasesAreBounded(t *testing.T) {
	t.Parallel()
	ten := limiter.Options{MaxLeases: 10}
	units := ask().Costs["rpm"]
	for _, c := range []struct {
		name         string
		o            limiter.Options
		others       int // callers that have had a lease before
		caller       string
		want         int
		thenAnyOther bool // another caller is then admitted
	}{
		{"the program itself", ten, 0, "", 10, false},
		{"a caller alone", ten, 0, "a", 9, true},
		{"one of several", limiter.Options{MaxLeases: 100}, 1, "a", 10, true},
		{"a bound of its own", limiter.Options{MaxLeases: 10, MaxLeasesPerCaller: 3}, 0, "a", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := leaseEpoch
			c.o.Now = func() time.Time { return now }
			l := callersLimiter(t, c.o)
			for i := range c.others {
				settledAs(weir.ContextWithCaller(t.Context(), fmt.Sprint("other", i)), t, l, now)
			}
			ctx := weir.ContextWithCaller(t.Context(), c.caller)
			var leases []*weir.Lease
			refused := func() { t.Helper(); wantOverloaded(ctx, t, l, c.want, c.o.MaxLeases) }
			fill := func(most int) {
				t.Helper()
				for len(leases) < most {
					lease, err := l.Reserve(ctx, ask())
					if err != nil {
						t.Fatalf("after %d: %v", len(leases), err)
					}
					leases = append(leases, lease)
				}
			}
			fill(c.want)
			refused()
			again := ask()
			again.LeaseID = leases[0].ID
			if lease, err := l.Reserve(ctx, again); err != nil || !lease.Replay {
				t.Errorf("a known lease: got %v, %v", lease, err)
			}
			status, err := l.Status(ctx, "acme", "gpt-4o")
			if err != nil || status[0].Available != 1<<30-int64(c.want)*units {
				t.Errorf("got %v, %v, want that what was refused is not charged", status, err)
			}
			if _, err := leases[0].Complete(ctx); err != nil {
				t.Fatal(err)
			}
			leases = leases[1:]
			fill(c.want)
			refused()
			if got := l.LeaseStats(); got.Live != int64(c.want) || got.Refused != 2 || got.MaxLive != int64(c.o.MaxLeases) {
				t.Errorf("got %+v", got)
			}
			other := weir.ContextWithCaller(t.Context(), "quite another")
			if _, err := l.Reserve(other, ask()); (err == nil) != c.thenAnyOther {
				t.Errorf("another caller: got %v", err)
			}
			now = now.Add(2 * time.Hour) // all have expired
			leases = nil
			fill(1)
		})
	}
}

// TestDeniedLeasesDoNotCount checks that a denied reservation does not count as a live lease.
func TestDeniedLeasesDoNotCount(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	denials(fake, 1<<30, time.Second)
	l, err := limiter.New(fake, &limiter.Options{MaxLeases: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx := weir.ContextWithCaller(t.Context(), "a")
	for range 20 {
		r := ask()
		r.LeaseID = weir.NewLeaseID(time.Now())
		for _, r := range []*weir.Request{ask(), r} {
			if _, err := l.Reserve(ctx, r); errors.Is(err, weir.Overloaded) {
				t.Fatal(err)
			}
		}
	}
	if got := l.LeaseStats().Live; got != 0 {
		t.Errorf("got %d live leases, want none", got)
	}
}

// TestCallersAreBounded checks that any number of callers, such as addresses, takes bounded memory,
// and that each can reserve.
func TestCallersAreBounded(t *testing.T) {
	t.Parallel()
	l := callersLimiter(t, limiter.Options{LeaseMemorySize: 1000})
	for i := range 20_000 {
		ctx := weir.ContextWithCaller(t.Context(), fmt.Sprint("caller", i))
		if lease, err := l.Reserve(ctx, ask()); err != nil {
			t.Fatal(err)
		} else if _, err := lease.Cancel(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
