//go:build cgo

package tigerbeetle

import (
	"context"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
)

// lookupHookLedger is a ledger that calls functions before and after accounts are looked up.
type lookupHookLedger struct {
	Ledger

	before, after int
	disturb       func()
}

func (d *lookupHookLedger) LookupAccounts(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Account, error) {
	if d.before > 0 {
		d.before--
		d.disturb()
	}
	found, err := d.Ledger.LookupAccounts(ctx, ids)
	if d.after > 0 {
		d.after--
		d.disturb()
	}
	return found, err
}

// TestReadDuringRefills reads a bucket whose anchor another server moves during the read. The
// result is right or, if the anchor moves in every round, lacks one refill and is uncertain. A
// refill is never counted twice.
func TestReadDuringRefills(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		before, after int
		doubt         bool
	}{
		{0, 0, false},
		{1, 0, false},
		{0, 1, false},
		{2, 2, false},
		{readRounds, 0, true},
		{0, readRounds, true},
		{readRounds, readRounds, true},
	} {
		c := newCluster(t, 0)
		d := &weir.Definitions{System: []weir.Limit{bucketOf(100)}}
		other, reader := c.open(d, 0), c.open(d, 0)
		take := func(n int64) {
			if _, err := other.Reserve(t.Context(), unit("b", n)); err != nil {
				t.Fatal(err)
			}
		}
		take(90)
		c.pass(time.Second)
		s, key := reader.store, limitKey{weir.Subject{Entity: "e", Resource: "r"}, "b", weir.Bucket}
		s.ledger = &lookupHookLedger{s.ledger, tc.before, tc.after, func() {
			c.pass(300 * time.Millisecond)
			take(1)
		}}
		read := s.states.find(0, &s.namespace, key)
		if err := s.readLimit(t.Context(), read); err != nil {
			t.Fatal(err)
		}
		now := c.clock.now().UnixMilli()
		is := other.store.states.find(0, &s.namespace, key)
		got, want := read.bucket.balanceAt(now), is.bucket.balanceAt(now)
		if got > want || got < want-3000 || got != want && !tc.doubt {
			t.Errorf("%d before, %d after: read as %d milli-units, which are %d",
				tc.before, tc.after, got, want)
		}
		if read.uncertain != tc.doubt {
			t.Errorf("%d before, %d after: in doubt is %t", tc.before, tc.after, read.uncertain)
		}
	}
}
