//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// recordingEmulator is an emulator with a delay each way that records what is in use.
type recordingEmulator struct {
	*emulator.Emulator

	slots int64 // the capacity

	mu    sync.Mutex
	facts []slotsRecord
}

// slotsRecord records the slots in use on the ledger after a call.
type slotsRecord struct {
	at   time.Time
	held int64
	ends expiringEstimate
}

// Close does nothing, because other stores use the cluster.
func (*recordingEmulator) Close() error { return nil }

func randomDelay() { time.Sleep(time.Duration(100+rand.IntN(400)) * time.Microsecond) }

// callWithDelays makes a call with a delay each way.
func callWithDelays[A, R any](
	ctx context.Context, do func(context.Context, A) (R, error), of A,
) (R, error) {
	randomDelay()
	defer randomDelay()
	return do(ctx, of)
}

func (d *recordingEmulator) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	randomDelay()
	defer randomDelay()
	d.mu.Lock()
	defer d.mu.Unlock()
	results, err := d.Emulator.CreateTransfers(ctx, t)
	d.note()
	return results, err
}

func (d *recordingEmulator) LookupAccounts(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Account, error) {
	return callWithDelays(ctx, d.Emulator.LookupAccounts, ids)
}

func (d *recordingEmulator) LookupTransfers(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Transfer, error) {
	return callWithDelays(ctx, d.Emulator.LookupTransfers, ids)
}

func (d *recordingEmulator) AccountTransfers(
	ctx context.Context, f tb.AccountFilter,
) ([]tb.Transfer, error) {
	return callWithDelays(ctx, d.Emulator.AccountTransfers, f)
}

func (d *recordingEmulator) QueryTransfers(
	ctx context.Context, f tb.QueryFilter,
) ([]tb.Transfer, error) {
	return callWithDelays(ctx, d.Emulator.QueryTransfers, f)
}

// note records the current fact and drops those that are older than a second.
func (d *recordingEmulator) note() {
	f := slotsRecord{at: time.Now()}
	stored := d.Contents()
	slots := make(map[tb.Uint128]bool)
	for _, a := range stored.Accounts {
		if a.Code == codeConcurrency {
			slots[a.ID] = true
			f.held += int64(lowUint64(a.DebitsPending))
		}
	}
	for _, t := range stored.Transfers {
		if slots[t.DebitAccountID] && t.Pending && t.Timeout > 0 {
			f.ends.Add(timestampMS(t.Timestamp)+timeoutMS(&t.Transfer), int64(lowUint64(t.Amount)))
		}
	}
	d.facts = append(d.facts, f)
	for len(d.facts) > 1 && f.at.Sub(d.facts[1].at) > time.Second {
		d.facts = d.facts[1:]
	}
}

// right checks that a denial by the slots was right at some instant between from and now, and that
// its retry-after is no longer than it took.
func (d *recordingEmulator) right(from time.Time, s *weir.LimitStatus) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var last slotsRecord
	longest := time.Duration(-1)
	for i := range d.facts {
		f := &d.facts[i]
		if next := i + 1; next < len(d.facts) && d.facts[next].at.Before(from) {
			continue
		}
		last = *f
		if f.held+s.Requested > d.slots {
			ends := f.ends.clone()
			at, _ := ends.freeAt(f.at.UnixMilli(), d.slots-s.Requested)
			longest = max(longest, time.UnixMilli(at).Sub(from))
		}
	}
	switch {
	case longest < 0:
		return fmt.Errorf("%d slots were held at last, and a denial that took %s names them: %d available, retry after %s",
			last.held, time.Since(from), s.Available, s.RetryAfter)
	case s.RetryAfter > longest+time.Second:
		return fmt.Errorf("retry after %s, want at most %s", s.RetryAfter, longest)
	}
	return nil
}

// exchange is a set of servers. Callers complete on one of them what they reserved on another.
type exchange struct {
	*testing.T

	servers []*limiter.Limiter
	callers int
	denials int64
	// judge returns an error if a denial to a call that began at from was wrong.
	judge func(from time.Time, e *weir.DeniedError) error

	denied, admitted, named, wrong atomic.Int64
	longest                        atomic.Int64
}

// exchanged returns definitions with a bucket and slots.
func exchanged(slots, rate int64) *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{
		{Name: "b", Kind: weir.Bucket, Capacity: 5, RefillAmount: rate, RefillPeriod: time.Second},
		{Name: "s", Kind: weir.Concurrency, Capacity: slots, Timeout: 300 * time.Second},
	}}
}

// run has the callers reserve until there were x.denials denials.
func (x *exchange) run() {
	var all sync.WaitGroup
	for i := range x.callers {
		all.Go(func() {
			for x.denied.Load() < x.denials && x.wrong.Load() < 10 {
				x.once(i)
			}
		})
	}
	all.Wait()
}

// warm has each server settle a lease of the other, which is a sign of another server. Before the
// first sign a denial from memory may be a second old.
func (x *exchange) warm() {
	for i := range x.servers {
		lease, err := x.servers[i].Reserve(x.Context(), unit("b", 1))
		if err != nil {
			x.Fatal(err)
		}
		if _, err := x.servers[1-i].Cancel(x.Context(), lease.ID); err != nil {
			x.Fatal(err)
		}
	}
}

func (x *exchange) once(i int) {
	from := time.Now()
	lease, err := x.servers[i%len(x.servers)].Reserve(x.Context(), unit("b", 1))
	if err == nil {
		x.admitted.Add(1)
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		_, err := x.servers[(i+1)%len(x.servers)].Complete(x.Context(), lease.ID, []weir.Costs{{"b": 1}})
		if err != nil {
			x.Errorf("complete: %v", err)
		}
		return
	}
	e, ok := errors.AsType[*weir.DeniedError](err)
	if !ok {
		x.Errorf("reserve: %v", err)
		return
	}
	x.denied.Add(1)
	for k := range e.Limits {
		if s := &e.Limits[k]; s.Exceeded && s.Limit == "s" {
			x.named.Add(1)
		}
	}
	x.longest.Store(max(x.longest.Load(), int64(e.RetryAfter)))
	if err := x.judge(from, e); err != nil {
		x.wrong.Add(1)
		x.Errorf("denial %d: %v", x.denied.Load(), err)
	}
	time.Sleep(time.Duration(1+rand.IntN(5)) * time.Millisecond)
}

func (x *exchange) report() {
	x.Logf("%d denials, %d admitted, %d denials name the slots, %d are wrong, longest retry-after %s",
		x.denied.Load(), x.admitted.Load(), x.named.Load(), x.wrong.Load(), time.Duration(x.longest.Load()))
}

// TestServersSettleForEachOther checks two servers whose callers each complete on the other:
// neither denies for slots that are free or reports too long a retry-after, both if the slots are
// never all taken and if they are.
func TestServersSettleForEachOther(t *testing.T) {
	t.Parallel()
	for slots, rate := range map[int64]int64{12: 100, 4: 1000} {
		synctest.Test(t, func(t *testing.T) {
			ledger := &recordingEmulator{Emulator: emulator.New(nil), slots: slots}
			x := &exchange{T: t, callers: 10, denials: int64(soak.Amount(2000, 20_000))}
			x.judge = func(from time.Time, e *weir.DeniedError) error {
				for i := range e.Limits {
					s := &e.Limits[i]
					if s.Exceeded && s.Limit == "s" {
						if err := ledger.right(from, s); err != nil {
							return err
						}
					} else if s.RetryAfter > time.Second {
						return fmt.Errorf("retry after %s", s.RetryAfter)
					}
				}
				return nil
			}
			for range 2 {
				s, err := OpenLedger(t.Context(), ledger, &Options{Definitions: exchanged(slots, rate), Poll: -1})
				if err != nil {
					t.Fatal(err)
				}
				l, err := limiter.New(s, &limiter.Options{CacheTTL: -1})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close() //nolint:errcheck // Close never fails
				x.servers = append(x.servers, l)
			}
			x.warm()
			x.run()
			x.report()
			if x.denied.Load() < x.denials || x.admitted.Load() < x.denials/20 {
				t.Errorf("%d denied and %d admitted, want more", x.denied.Load(), x.admitted.Load())
			}
			if slots < 10 == (x.named.Load() == 0) {
				t.Errorf("%d slots: %d denials name them", slots, x.named.Load())
			}
		})
	}
}

// TestServersSettleForEachOtherLive is TestServersSettleForEachOther on a real server, with slots
// that are never all taken.
func TestServersSettleForEachOtherLive(t *testing.T) {
	t.Parallel()
	_, servers := liveServers(t, exchanged(12, 100))
	x := &exchange{T: t, servers: servers, callers: 10, denials: int64(soak.Amount(2000, 20_000))}
	x.judge = func(_ time.Time, e *weir.DeniedError) error {
		for i := range e.Limits {
			if s := &e.Limits[i]; s.Exceeded && s.Limit == "s" || s.RetryAfter > time.Second {
				return fmt.Errorf("names %s: retry after %s", s.Limit, s.RetryAfter)
			}
		}
		return nil
	}
	x.warm()
	x.run()
	x.report()
}
