//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// TestStatsCountEveryCall compares the calls that a store counts with those that the ledger
// received.
func TestStatsCountEveryCall(t *testing.T) {
	t.Parallel()
	m := newMeter()
	d := &weir.Definitions{System: costLimits("bucket", "budget", "slots", "window")}
	store, err := OpenLedger(t.Context(), m, &Options{Definitions: d, Poll: -1, Now: m.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, &limiter.Options{Now: m.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	s := &costScene{T: t, m: m, Limiter: l, names: []string{"bucket", "budget", "slots", "window"}}
	for range 3 {
		s.pass(2 * time.Second)
		err = errors.Join(err, s.take("solo", 10), adjustTo(5)(s), completeWith(5)(s),
			wasDenied(s.take("solo", 100)), wasDenied(s.take("solo", 100)))
		_, statusErr := s.Status(t.Context(), "solo", "r")
		err = errors.Join(err, statusErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, want := store.Stats(), m.count()
	if (counted{got.TransferCalls, got.Transfers, got.Lookups, got.Queries}) != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Remembered != 3 || got.Again != 0 || got.Contended != 0 {
		t.Errorf("got %+v, want 3 remembered denials and no chain sent again", got)
	}
}

// TestStatsCountChainsSentAgain checks that if two servers refill a bucket at the same time, the
// second one sends its chain twice and counts that as one chain sent again.
func TestStatsCountChainsSentAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := &weir.Definitions{System: []weir.Limit{bucketOf(20)}}
	first, second := c.open(d, 0), c.open(d, 0)
	for turn := range int64(3) {
		for _, m := range []*member{first, second} {
			if _, err := m.Reserve(t.Context(), unit("b", 1)); err != nil {
				t.Fatal(err)
			}
		}
		if got := second.store.Stats().Again; got != turn {
			t.Errorf("turn %d: the second server has sent %d again, want %d", turn, got, turn)
		}
		c.pass(time.Second)
		if _, err := first.Reserve(t.Context(), unit("b", 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// usedIDsLedger is a ledger on which the IDs of every chain have failed before.
type usedIDsLedger struct{ Ledger }

func (b usedIDsLedger) CreateTransfers(
	ctx context.Context, of []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	if len(of) == 1 { // definitions are put in force
		return b.Ledger.CreateTransfers(ctx, of)
	}
	results := make([]tb.CreateTransferResult, len(of))
	for i := range results {
		results[i].Status = tb.TransferIDAlreadyFailed
	}
	return results, nil
}

// TestStatsCountContention checks that a reservation that loses every try is denied as contended,
// and counted under the name that other stores use.
func TestStatsCountContention(t *testing.T) {
	t.Parallel()
	d := &weir.Definitions{System: []weir.Limit{bucketOf(20)}}
	store, err := OpenLedger(t.Context(), usedIDsLedger{emulator.New(nil)}, &Options{Definitions: d, Poll: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(t.Context(), unit("b", 1)); wasDenied(err) != nil {
		t.Errorf("got %v, want a denial", err)
	}
	counts := make(map[string]int64)
	store.Counts(func(name, _ string, read func() int64) bool {
		counts[name] = read()
		return true
	})
	for name, want := range map[string]int64{
		"contended": 1, "again": maxTries - 1, "transfer_calls": maxTries + 1, "remembered": 0,
	} {
		if got, ok := counts[name]; !ok || got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	if got := store.Stats(); got.Contended != 1 || len(counts) != 10 {
		t.Errorf("got %+v and counts %v, want each of ten", got, counts)
	}
}
