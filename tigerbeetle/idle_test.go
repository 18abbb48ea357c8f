//go:build cgo

package tigerbeetle

import (
	"context"
	"fmt"
	"reflect"
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

// delayedEmulator is an emulator with a delay each way, whose clock the store cannot read.
type delayedEmulator struct {
	Ledger

	away time.Duration
}

func (r *delayedEmulator) CreateAccounts(
	ctx context.Context, a []tb.Account,
) ([]tb.CreateAccountResult, error) {
	time.Sleep(r.away)
	defer time.Sleep(r.away)
	return r.Ledger.CreateAccounts(ctx, a)
}

func (r *delayedEmulator) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	time.Sleep(r.away)
	defer time.Sleep(r.away)
	return r.Ledger.CreateTransfers(ctx, t)
}

func (*delayedEmulator) Close() error { return nil }

// opened opens a server on a ledger; the server's own clock runs fast by a rate.
func opened(t *testing.T, ledger Ledger, o Options, fast float64) *member {
	t.Helper()
	began := time.Now()
	o.Now = func() time.Time {
		passed := time.Since(began)
		return began.Add(passed + time.Duration(float64(passed)*fast))
	}
	s, err := OpenLedger(t.Context(), ledger, &o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{CacheTTL: -1, StoreTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return &member{l, s, nil}
}

// takes returns how many units a server admits, one at a time, until one is denied.
func (m *member) takes(t *testing.T, limit string, most int) (n int) {
	t.Helper()
	for ; n < most; n++ {
		if _, err := m.Reserve(t.Context(), unit(limit, 1)); denied(err) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// takesAtOnce is like takes, with one call for all units.
func (m *member) takesAtOnce(t *testing.T, limit string, units int) int {
	t.Helper()
	if _, err := m.Reserve(t.Context(), unit(limit, int64(units))); denied(err) {
		return 0
	} else if err != nil {
		t.Fatal(err)
	}
	return units
}

func hourly(capacity int64, zone string) *weir.Definitions {
	return &weir.Definitions{System: []weir.Limit{
		{Name: "m", Kind: weir.Budget, Capacity: capacity, Every: "hour", Zone: zone},
	}}
}

// TestIdleBoundary checks that a server that was idle for an hour charges a budget to the period in
// which a call comes, from the period's first millisecond to its last, whatever its own clock does.
func TestIdleBoundary(t *testing.T) {
	t.Parallel()
	for _, poll := range []time.Duration{0, -1} {
		for _, fast := range []float64{-0.0009, 0, 0.0009} {
			for _, away := range []time.Duration{0, 3 * time.Millisecond} {
				t.Run(fmt.Sprintf("%v %v %v", poll, fast, away), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { idleBoundary(t, poll, fast, away) })
				})
			}
		}
	}
}

func idleBoundary(t *testing.T, poll time.Duration, fast float64, away time.Duration) {
	t.Helper()
	const capacity = 100
	cluster := emulator.New(nil)
	ledger := &delayedEmulator{cluster, away}
	idle := opened(t, ledger, Options{Definitions: hourly(capacity, "UTC"), Poll: poll}, fast)
	busy := opened(t, &delayedEmulator{cluster, 0}, Options{Definitions: hourly(capacity, "UTC"), Poll: -1}, 0)
	defer func() { _ = idle.Close() }()
	defer func() { _ = busy.Close() }()
	boundary := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
	time.Sleep(time.Until(boundary) - time.Second)
	if got := busy.takes(t, "m", 40); got != 40 {
		t.Fatalf("admitted %d before the boundary", got)
	}
	time.Sleep(time.Until(boundary))
	lag := time.Now().UnixMilli() - idle.store.clock.nowMS()
	// One call for all that the old period has left, because an answer to a first call would tell
	// the time.
	got := idle.takesAtOnce(t, "m", capacity-40)
	if got += idle.takes(t, "m", 3*capacity); got != capacity {
		t.Errorf("%d ms behind: admitted %d of %d after the boundary", lag, got, capacity)
	}
	time.Sleep(3 * time.Second)
	if got := idle.takes(t, "m", capacity) + busy.takes(t, "m", capacity); got != 0 {
		t.Errorf("admitted %d more in the same period", got)
	}
	if poll == 0 && lag > 2+away.Milliseconds() {
		t.Errorf("an idle server that polls is %d ms behind", lag)
	}
	// The last millisecond belongs to the old period, although the call is carried out after it.
	next := boundary.Add(time.Hour)
	time.Sleep(time.Until(next) - time.Millisecond)
	if got := idle.takes(t, "m", 1); got != 0 && away == 0 {
		t.Error("admitted in a period that is used up")
	}
}

// TestIdleDay checks a server that has made no call for a day: units that it takes again end in
// time, and a lease that it makes lives as long as any other.
func TestIdleDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &weir.Definitions{System: []weir.Limit{
			{Name: "w", Kind: weir.Window, Capacity: 10, Window: time.Minute},
		}}
		cluster := &delayedEmulator{emulator.New(nil), 0}
		idle := opened(t, cluster, Options{Definitions: d}, 0)
		busy := opened(t, cluster, Options{Definitions: d, Poll: -1}, 0)
		defer func() { _ = idle.Close() }()
		defer func() { _ = busy.Close() }()
		time.Sleep(24 * time.Hour)
		lease, err := busy.Reserve(t.Context(), unit("w", 10))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if _, err := idle.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"w": 5}}); err != nil {
			t.Fatal(err)
		}
		if got := busy.takes(t, "w", 10); got != 5 {
			t.Errorf("admitted %d beside the 5 that are kept, want 5", got)
		}
		time.Sleep(time.Until(lease.ReservedAt.Add(time.Minute + time.Second)))
		if got := busy.takes(t, "w", 10); got != 5 {
			t.Errorf("admitted %d a second after the window's end, want 5", got)
		}
		// A lease of a minute, made by a server that was idle for a day.
		record, err := idle.store.RecoverLease(t.Context(), time.Now(), lease.ID)
		if err != nil || record.Expires.Sub(record.At) < time.Hour-10*time.Millisecond {
			t.Errorf("the lease: %+v, %v", record, err)
		}
		other, err := idle.Reserve(t.Context(), unit("w", 0))
		if err != nil {
			t.Fatal(err)
		}
		record, err = busy.store.RecoverLease(t.Context(), time.Now(), other.ID)
		if err != nil || record.Expires.Sub(record.At) < time.Hour-10*time.Millisecond {
			t.Errorf("the idle server's lease: %+v, %v", record, err)
		}
	})
}

// TestIdleRarelyAsksForTime checks that a poll asks for the time only if no answer has had a
// timestamp after the poll before, and that the cluster stores nothing for it.
func TestIdleRarelyAsksForTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &timeCallCounter{Emulator: emulator.New(nil)}
		s := opened(t, m, Options{Definitions: hourly(1000, "UTC")}, 0)
		defer func() { _ = s.Close() }()
		time.Sleep(500 * time.Millisecond)
		before := m.Contents()
		begin := m.times.Load()
		time.Sleep(10 * time.Second)
		if got := m.times.Load() - begin; got != 10 {
			t.Errorf("asked for the time %d times in ten idle polls", got)
		}
		if !reflect.DeepEqual(m.Contents(), before) {
			t.Error("an idle store has written")
		}
		begin = m.times.Load()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if _, err := s.Reserve(t.Context(), unit("m", 1)); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.times.Load() - begin; got != 0 {
			t.Errorf("a busy server asked for the time %d times", got)
		}
	})
}

// timeCallCounter counts the calls that only ask for the time.
type timeCallCounter struct {
	*emulator.Emulator

	times atomic.Int64
}

func (m *timeCallCounter) CreateAccounts(
	ctx context.Context, a []tb.Account,
) ([]tb.CreateAccountResult, error) {
	if len(a) == 1 && a[0] == (tb.Account{}) {
		m.times.Add(1)
	}
	return m.Emulator.CreateAccounts(ctx, a)
}

// TestIdleBoundaryLive is TestIdleBoundary on a real server. It uses a zone whose hours begin at
// the next quarter, so that it waits for half an hour at most.
func TestIdleBoundaryLive(t *testing.T) {
	soak.Only(t)
	t.Parallel()
	const capacity = 100
	zones := map[int]string{0: "UTC", 15: "Asia/Kathmandu", 30: "Asia/Kolkata"}
	at, zone := time.Now().Truncate(15*time.Minute), ""
	for zone == "" {
		at = at.Add(15 * time.Minute)
		zone = zones[at.UTC().Minute()]
	}
	ledger, name := connected(t), liveNamespace()
	open := func(poll time.Duration, fast float64) *member {
		m := opened(t, sharedLedger{ledger}, Options{
			Definitions: hourly(capacity, zone), Namespace: name, Poll: poll,
		}, fast)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	idle := []*member{open(0, -0.0009), open(-1, 0.0009), open(0, 0.0009)}
	began := time.Now()
	<-time.After(time.Until(at) - 3*time.Second)
	busy := open(-1, 0)
	before := busy.takes(t, "m", 40)
	<-time.After(time.Until(at))
	lag := make([]int64, len(idle))
	for i, m := range idle {
		lag[i] = time.Now().UnixMilli() - m.store.clock.nowMS()
	}
	after := make([]int, len(idle)+1)
	for i, m := range idle {
		after[i] = m.takesAtOnce(t, "m", 20)
	}
	after[len(idle)] = idle[0].takes(t, "m", 3*capacity)
	t.Logf("idle for %v in %s: %v ms behind; admitted %d before the boundary, %v after it",
		time.Since(began).Round(time.Second), zone, lag, before, after)
	<-time.After(3 * time.Second)
	late := busy.takes(t, "m", capacity)
	if sum := after[0] + after[1] + after[2] + after[3] + late; sum != capacity {
		t.Errorf("admitted %v and %d of %d in the new period", after, late, capacity)
	}
}
