//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// outage is an emulator that can go down. As with TigerBeetle's client, calls made meanwhile are
// carried out in order once it is up again, even if their callers have left.
type outage struct {
	*emulator.Emulator

	mu   sync.Mutex
	back chan struct{} // nil while the cluster is up
	pass int           // how many create_transfers calls pass while it is down
	turn sync.Mutex
}

// Close does nothing, because other stores use the cluster.
func (o *outage) Close() error { return nil }

func (o *outage) down() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.back = make(chan struct{})
}

func (o *outage) up() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.back)
	o.back = nil
}

// through makes a call once the cluster is up, unless the context ends first.
func through[A, R any](
	ctx context.Context, o *outage, do func(context.Context, A) (R, error), of A,
) (R, error) {
	o.mu.Lock()
	back := o.back
	o.mu.Unlock()
	if back == nil {
		return do(ctx, of)
	}
	type answer struct {
		result R
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		<-back
		o.turn.Lock()
		defer o.turn.Unlock()
		result, err := do(context.WithoutCancel(ctx), of)
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

func (o *outage) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	o.mu.Lock()
	passes := o.pass > 0
	o.pass = max(o.pass-1, 0)
	o.mu.Unlock()
	if passes {
		return o.Emulator.CreateTransfers(ctx, t)
	}
	return through(ctx, o, o.Emulator.CreateTransfers, t)
}

func (o *outage) LookupTransfers(ctx context.Context, ids []tb.Uint128) ([]tb.Transfer, error) {
	return through(ctx, o, o.Emulator.LookupTransfers, ids)
}

func (o *outage) LookupAccounts(ctx context.Context, ids []tb.Uint128) ([]tb.Account, error) {
	return through(ctx, o, o.Emulator.LookupAccounts, ids)
}

func (o *outage) QueryTransfers(ctx context.Context, f tb.QueryFilter) ([]tb.Transfer, error) {
	return through(ctx, o, o.Emulator.QueryTransfers, f)
}

func (o *outage) AccountTransfers(ctx context.Context, f tb.AccountFilter) ([]tb.Transfer, error) {
	return through(ctx, o, o.Emulator.AccountTransfers, f)
}

// outageWorld is a test in a synctest bubble with a cluster that can go down.
type outageWorld struct {
	*testing.T
	*outage
}

// inOutages runs a test in a synctest bubble.
func inOutages(t *testing.T, play func(b *outageWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		play(&outageWorld{t, &outage{Emulator: emulator.New(nil)}})
	})
}

// cascading returns definitions by which requests of entity e also charge its parent p.
func cascading(capacity int64) *weir.Definitions {
	d := fourLimits(capacity)
	d.Entities = map[string]weir.EntityDefinition{"e": {Parent: "p", Cascade: true}, "p": {}}
	return d
}

func (b *outageWorld) serve() (*limiter.Limiter, *Store) {
	b.T.Helper()
	s, err := OpenLedger(b.Context(), b.outage, &Options{Definitions: cascading(20), Poll: -1})
	if err != nil {
		b.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{CacheTTL: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l, s
}

// several returns a request of two charges, each of which costs a unit of every limit of e and p.
func several() *weir.Request {
	one := weir.Charge{Entity: "e", Resource: "r", Costs: allFour(1)}
	return &weir.Request{LeaseID: weir.NewLeaseID(time.Now()), Charges: []weir.Charge{one, one}}
}

func allFour(n int64) weir.Costs { return weir.Costs{"b": n, "m": n, "s": n, "w": n} }

// leave reserves with a context that ends after 100 ms, and expects that no answer comes before.
func (b *outageWorld) leave(l *limiter.Limiter, r *weir.Request) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Reserve(ctx, r); !errors.Is(err, weir.Unavailable) {
		b.Errorf("while the cluster is down: got %v, want %v", err, weir.Unavailable)
	}
}

// free checks that every limit has want units available.
func (b *outageWorld) free(l *limiter.Limiter, want int64) {
	b.T.Helper()
	for _, entity := range []string{"e", "p"} {
		statuses, err := l.Status(b.Context(), entity, "r")
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range statuses {
			if s.Available != want {
				b.Errorf("%s %s: %d available, want %d", entity, s.Limit, s.Available, want)
			}
		}
	}
}

// TestAbandonedIsWithdrawn checks that reservations whose callers left while the cluster was down
// are given back within two seconds of its return, for every kind of limit, and that their leases
// have ended on every server.
func TestAbandonedIsWithdrawn(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		l, s := b.serve()
		if _, err := l.Reserve(b.Context(), several()); err != nil {
			b.Fatal(err)
		}
		b.down()
		requests := make([]*weir.Request, 9)
		var all sync.WaitGroup
		for i := range requests {
			requests[i] = several()
			all.Go(func() { b.leave(l, requests[i]) })
		}
		all.Wait()
		b.up()
		time.Sleep(2 * time.Second)
		b.free(l, 18)
		stats := s.Stats()
		if stats.Abandoned != 9 || stats.Withdrawn == 0 {
			b.Errorf("got %+v, want 9 abandoned, and some of them withdrawn", stats)
		}
		other, _ := b.serve()
		for _, r := range requests {
			_, err := l.Reserve(b.Context(), r)
			_, elsewhere := other.Reserve(b.Context(), r)
			if err == nil && elsewhere == nil { // the chain was never sent
				continue
			}
			if !errors.Is(err, weir.Ended) || !errors.Is(elsewhere, weir.Ended) {
				b.Errorf("repeated: %v, elsewhere %v, want %v", err, elsewhere, weir.Ended)
			}
		}
	})
}

// TestAbandonedPeriod checks that units reserved before the end of a budget's period return to that
// period.
func TestAbandonedPeriod(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		l, _ := b.serve()
		end := time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC)
		time.Sleep(time.Until(end) - 5*time.Second)
		if _, err := l.Reserve(b.Context(), unit("m", 1)); err != nil {
			b.Fatal(err)
		}
		time.Sleep(4500 * time.Millisecond)
		b.down()
		b.leave(l, unit("m", 5))
		b.up()
		time.Sleep(2 * time.Second)
		for _, a := range b.Contents().Accounts {
			if a.Code == codeBudget && int64(a.UserData32) == end.Unix() && usedOf(&a) != 1 {
				b.Errorf("%d used in the period that has ended, want 1", usedOf(&a))
			}
		}
	})
}

// TestAbandonedIsAdopted checks that a repeat gets the lease, charged once and not withdrawn, if it
// comes while the first attempt is in flight or within a second of its outcome.
func TestAbandonedIsAdopted(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		inOutages(t, func(b *outageWorld) {
			l, s := b.serve()
			if _, err := l.Reserve(b.Context(), several()); err != nil {
				b.Fatal(err)
			}
			b.down()
			r := several()
			b.leave(l, r)
			var lease *weir.Lease
			var err error
			repeat := func() { lease, err = l.Reserve(b.Context(), r) }
			if early {
				go repeat()
				synctest.Wait()
			}
			b.up()
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
			if !early {
				repeat()
			}
			if err != nil || lease == nil {
				b.Fatalf("early %t: got %v, %v, want the lease", early, lease, err)
			}
			time.Sleep(5 * time.Second)
			b.free(l, 16)
			if _, err := lease.Extend(b.Context()); err != nil {
				b.Errorf("early %t: the lease that was adopted: %v", early, err)
			}
			if got := s.Stats(); got.Withdrawn != 0 {
				b.Errorf("early %t: %d withdrawn, want none", early, got.Withdrawn)
			}
		})
	}
}

// TestAbandonedOtherContent checks that a repeat with other content gets no lease and that the
// first one is withdrawn.
func TestAbandonedOtherContent(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		l, _ := b.serve()
		b.down()
		r := unit("s", 1)
		r.LeaseID = weir.NewLeaseID(time.Now())
		b.leave(l, r)
		b.up()
		time.Sleep(100 * time.Millisecond)
		if _, err := l.Reserve(b.Context(), unit("s", 1)); err != nil {
			b.Fatal(err)
		}
		b.down()
		b.leave(l, r)
		b.up()
		time.Sleep(100 * time.Millisecond)
		other := *r
		other.Costs = weir.Costs{"s": 2}
		if _, err := l.Reserve(b.Context(), &other); !errors.Is(err, weir.Conflict) {
			b.Errorf("with other content: got %v, want %v", err, weir.Conflict)
		}
		time.Sleep(2 * time.Second)
		if got := left(b.T, l, "s"); got != 19 {
			b.Errorf("%d available, want 19", got)
		}
	})
}

// TestAbandonedAdoptedByAnotherServer checks that a repeat on another server adopts the lease, so
// that the server that reserved it does not withdraw it.
func TestAbandonedAdoptedByAnotherServer(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		first, s := b.serve()
		second, _ := b.serve()
		if _, err := first.Reserve(b.Context(), several()); err != nil {
			b.Fatal(err)
		}
		b.down()
		r := several()
		b.leave(first, r)
		b.up()
		time.Sleep(500 * time.Millisecond)
		lease, err := second.Reserve(b.Context(), r)
		if err != nil || !lease.Replay {
			b.Fatalf("on another server: got %v, %v, want a replay", lease, err)
		}
		time.Sleep(5 * time.Second)
		b.free(second, 16)
		if _, err := lease.Extend(b.Context()); err != nil {
			b.Errorf("the lease that was adopted: %v", err)
		}
		if got := s.Stats().Withdrawn; got != 0 {
			b.Errorf("%d withdrawn, want none", got)
		}
	})
}

// TestAbandonedAnswerLost checks that a reservation whose answer was lost is withdrawn, unless a
// repeat comes within a second.
func TestAbandonedAnswerLost(t *testing.T) {
	t.Parallel()
	for _, repeated := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := &losingLedger{Ledger: emulator.New(nil)}
			s, err := OpenLedger(t.Context(), net, &Options{Definitions: fourLimits(20), Poll: -1})
			if err != nil {
				t.Fatal(err)
			}
			l, err := limiter.New(s, &limiter.Options{CacheTTL: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck // Close never fails
			net.lose.Store(true)
			r := unit("s", 1)
			r.LeaseID = weir.NewLeaseID(time.Now())
			if _, err := l.Reserve(t.Context(), r); !errors.Is(err, weir.Unavailable) {
				t.Fatalf("got %v, want %v", err, weir.Unavailable)
			}
			want := int64(20)
			if repeated {
				if _, err := l.Reserve(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				want = 19
			}
			time.Sleep(2 * time.Second)
			if got := left(t, l, "s"); got != want {
				t.Errorf("repeated %t: %d available, want %d", repeated, got, want)
			}
		})
	}
}

// TestAbandonedUnsent checks that a caller that leaves before its chain is sent leaves nothing on
// the ledger.
func TestAbandonedUnsent(t *testing.T) {
	t.Parallel()
	inOutages(t, func(b *outageWorld) {
		l, _ := b.serve()
		if _, err := l.Reserve(b.Context(), unit("b", 1)); err != nil {
			b.Fatal(err)
		}
		time.Sleep(time.Second)
		b.down()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 200 * time.Millisecond) // the later ones come when the move in flight is too old
				b.leave(l, unit("b", 1))
			})
		}
		all.Wait()
		b.up()
		time.Sleep(500 * time.Millisecond)
		headers := slices.DeleteFunc(b.Contents().Transfers, func(t emulator.Transfer) bool {
			return t.Code != codeLease || t.Flags&flagPending == 0
		})
		if len(headers) != 2 {
			b.Errorf("%d reservations were carried out, want the first and one of five", len(headers))
		}
	})
}

// TestAbandonedClose checks that Close gives back what has been carried out, and does not wait for
// a cluster that does not answer.
func TestAbandonedClose(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		inOutages(t, func(b *outageWorld) {
			l, s := b.serve()
			if _, err := l.Reserve(b.Context(), several()); err != nil {
				b.Fatal(err)
			}
			b.down()
			b.leave(l, several())
			if back {
				b.up()
				synctest.Wait()
			}
			began := time.Now()
			if err := s.Close(); err != nil {
				b.Error(err)
			}
			if took := time.Since(began); took > closeTimeout {
				b.Errorf("back %t: Close took %s", back, took)
			}
			if back {
				after, _ := b.serve()
				b.free(after, 18)
			} else {
				b.up()
			}
		})
	}
}
