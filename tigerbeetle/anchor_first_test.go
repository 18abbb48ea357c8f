//go:build cgo

package tigerbeetle

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// holdingEmulator is an emulator that holds calls back until a gate is closed: before they are
// carried out, calls that move an anchor and the others by a gate each; after that, the answers of
// all calls and of queries. A nil gate holds nothing back.
type holdingEmulator struct {
	*emulator.Emulator

	anchors, others, answers, queries chan struct{}
}

func (g *holdingEmulator) AccountTransfers(
	ctx context.Context, f tb.AccountFilter,
) ([]tb.Transfer, error) {
	gate := g.queries
	found, err := g.Emulator.AccountTransfers(ctx, f)
	if gate != nil {
		<-gate
	}
	return found, err
}

// Close does nothing, because other stores use the cluster.
func (g *holdingEmulator) Close() error { return nil }

func (g *holdingEmulator) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	gate := g.others
	if slices.ContainsFunc(transfers, func(t tb.Transfer) bool { return t.Code == codeRefill }) {
		gate = g.anchors
	}
	if gate != nil {
		<-gate
	}
	answers := g.answers
	results, err := g.Emulator.CreateTransfers(ctx, transfers)
	if answers != nil {
		<-answers
	}
	return results, err
}

// serve opens a limiter on the emulator, in a synctest bubble.
func (g *holdingEmulator) serve(t *testing.T, limits ...weir.Limit) *limiter.Limiter {
	t.Helper()
	if g.Emulator == nil {
		g.Emulator = emulator.New(nil)
	}
	d := &weir.Definitions{System: limits}
	s, err := OpenLedger(t.Context(), g, &Options{Definitions: d, Poll: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// left returns what a limit has available by the cluster.
func left(t *testing.T, l *limiter.Limiter, limit string) int64 {
	t.Helper()
	statuses, err := l.Status(t.Context(), "e", "r")
	if err != nil {
		t.Fatal(err)
	}
	for i := range statuses {
		if statuses[i].Limit == limit {
			return statuses[i].Available
		}
	}
	t.Fatalf("no status of %s", limit)
	return 0
}

// TestFirstAnchorComesFirst checks that no chain takes from a bucket while the chain with its first
// anchor is in flight. Units that such a chain took first were missing in every status until the
// anchor was there.
func TestFirstAnchorComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &holdingEmulator{}
		l := g.serve(t, bucketOf(20))
		g.anchors = make(chan struct{})
		taken := make(chan int64, 2)
		take := func(n int64) {
			if _, err := l.Reserve(t.Context(), unit("b", n)); err != nil {
				t.Error(err)
			}
			taken <- n
		}
		go take(1)
		synctest.Wait()
		go take(2)
		synctest.Wait()
		want := int64(20)
		for range len(taken) { // what is answered so far
			want -= <-taken
		}
		if got := left(t, l, "b"); got != want {
			t.Errorf("the first anchor is on its way: %d available, want %d", got, want)
		}
		close(g.anchors)
		synctest.Wait()
		if got := left(t, l, "b"); got != 17 {
			t.Errorf("afterwards: %d available, want 17", got)
		}
	})
}

// TestFirstAnchorFails checks that if the chain with the first anchor is denied, a call that waited
// for it makes the anchor, and the bucket regains what was taken.
func TestFirstAnchorFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &holdingEmulator{}
		window := weir.Limit{Name: "w", Kind: weir.Window, Capacity: 1, Window: time.Hour}
		l := g.serve(t, bucketOf(20), window)
		if _, err := l.Reserve(t.Context(), unit("w", 1)); err != nil {
			t.Fatal(err)
		}
		g.anchors = make(chan struct{})
		go func() {
			both := unit("b", 1)
			both.Costs["w"] = 1
			if _, err := l.Reserve(t.Context(), both); !denied(err) {
				t.Errorf("got %v, want a denial", err)
			}
		}()
		synctest.Wait()
		go func() {
			if _, err := l.Reserve(t.Context(), unit("b", 20)); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		close(g.anchors)
		synctest.Wait()
		time.Sleep(time.Second)
		if _, err := l.Reserve(t.Context(), unit("b", 10)); err != nil {
			t.Errorf("what the bucket regained in a second: %v", err)
		}
	})
}

// TestChangedAnchorComesFirst checks that no chain takes by the old capacity while the chain that
// changes it is in flight. Such a chain was checked against a capacity of 100.
func TestChangedAnchorComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &holdingEmulator{}
		l := g.serve(t, fourLimits(100).System[0])
		if _, err := l.Reserve(t.Context(), unit("b", 1)); err != nil {
			t.Fatal(err)
		}
		lowered := &weir.Definitions{System: fourLimits(5).System[:1]}
		if err := l.Configure(t.Context(), lowered); err != nil {
			t.Fatal(err)
		}
		g.anchors, g.others = make(chan struct{}), make(chan struct{})
		admitted := make(chan bool, 4)
		for range cap(admitted) {
			go func() {
				_, err := l.Reserve(t.Context(), unit("b", 5))
				admitted <- err == nil
			}()
			synctest.Wait()
		}
		close(g.anchors)
		synctest.Wait()
		close(g.others)
		n := 0
		for range cap(admitted) {
			if <-admitted {
				n++
			}
		}
		if n != 1 {
			t.Errorf("a capacity of 5 admitted %d times 5", n)
		}
	})
}

// TestNoDenialForReturnedUnits checks that after the cluster has carried an update out no call is
// denied for the units it returned, even while its answer is on the way.
func TestNoDenialForReturnedUnits(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		synctest.Test(t, func(t *testing.T) {
			g := &holdingEmulator{}
			l := g.serve(t, fourLimits(5).System...)
			lease, err := l.Reserve(t.Context(), unit(limit, 5))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Reserve(t.Context(), unit(limit, 2)); !denied(err) {
				t.Fatalf("got %v, want a denial", err)
			}
			held := make(chan struct{})
			g.answers = held
			go func() {
				if _, err := l.Cancel(t.Context(), lease.ID); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			g.answers = nil
			if got := left(t, l, limit); got != 5 {
				t.Errorf("%s: %d available once it was cancelled, want 5", limit, got)
			}
			if _, err := l.Reserve(t.Context(), unit(limit, 2)); err != nil {
				t.Errorf("%s: %v, and a status had 5 available", limit, err)
			}
			close(held)
			synctest.Wait()
		})
	}
}

// TestNoDenialForOldHolds checks that the holds that a denied call read do not deny the next call
// if an update was answered in between.
func TestNoDenialForOldHolds(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"s", "w"} {
		synctest.Test(t, func(t *testing.T) {
			g := &holdingEmulator{}
			l := g.serve(t, fourLimits(5).System...)
			lease, err := l.Reserve(t.Context(), unit(limit, 2))
			if err != nil {
				t.Fatal(err)
			}
			elsewhere := (&holdingEmulator{Emulator: g.Emulator}).serve(t, fourLimits(5).System...)
			if _, err := elsewhere.Reserve(t.Context(), unit(limit, 3)); err != nil {
				t.Fatal(err)
			}
			held := make(chan struct{})
			g.queries = held
			go func() {
				// The cluster denied the call, but the units have been returned since.
				if _, err := l.Reserve(t.Context(), unit(limit, 1)); err != nil {
					t.Errorf("%s: denied, and then a lease of 2 was cancelled: %v", limit, err)
				}
			}()
			synctest.Wait()
			g.queries = nil
			if _, err := l.Cancel(t.Context(), lease.ID); err != nil {
				t.Error(err)
			}
			close(held)
			synctest.Wait()
			if _, err := l.Reserve(t.Context(), unit(limit, 1)); err != nil {
				t.Errorf("%s: %v, and a lease of 2 was cancelled", limit, err)
			}
		})
	}
}

// TestSettledHoldOfAnotherServer checks that a hold of another server that this one has returned is
// no longer counted here.
func TestSettledHoldOfAnotherServer(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"s", "w"} {
		c := newCluster(t, 0)
		a, b := c.open(fourLimits(5), 0), c.open(fourLimits(5), 0)
		lease, err := a.Reserve(t.Context(), unit(limit, 2))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Reserve(t.Context(), unit(limit, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Cancel(t.Context(), lease.ID); err != nil {
			t.Fatal(err)
		}
		l, err := b.Reserve(t.Context(), unit(limit, 1))
		if err != nil {
			t.Fatal(err)
		}
		if l.Limits[0].Available != 3 {
			t.Errorf("%s: got %d available, want 3", limit, l.Limits[0].Available)
		}
	}
}
