package bucketitem

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestImageLateRefund checks that a refund that is written late, when the share is full again, does
// not lift the balance above the share.
func TestImageLateRefund(t *testing.T) {
	t.Parallel()
	for name, shards := range map[string]int{"one": 1, "four": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const share = 20_000
			const now = int64(1_700_000_000_000)
			item := func(balance int64) *schema.Bucket {
				return &schema.Bucket{Shards: shards, RefilledMS: now - 60_000, Limits: []schema.BucketLimit{{
					Name: "rpm", Balance: balance, Capacity: share * int64(shards),
					Refill: share * int64(shards), PeriodMS: 1000,
				}}}
			}
			full := newImage(item(5_000), nil, shards, now).clone()
			full.Limits[0].Touch(now, shards)
			if got := full.Limits[0].BalanceMilli; got != share {
				t.Fatalf("the share holds %d, want %d", got, share)
			}
			after := newImage(item(8_000), full, shards, now)
			if got := after.Limits[0].balanceAt(now); got != share {
				t.Errorf("after the refund the share holds %d, want %d", got, share)
			}
			less := newImage(item(1_000), full, shards, now)
			if got, want := less.Limits[0].balanceAt(now), int64(share-4_000); got != want {
				t.Errorf("after another writer's charge the share holds %d, want %d", got, want)
			}
		})
	}
}

// TestRefundedLimitIsForgotten checks that a limit that was forgotten when it was charged is
// forgotten again after the refund, unless another reservation has used it in between.
func TestRefundedLimitIsForgotten(t *testing.T) {
	t.Parallel()
	const used, now = int64(1_000_000), int64(9_000_000)
	asks := []Take{{Name: "n", Milli: 4000}}
	n := StoredLimit(&weir.Limit{Name: "n", Capacity: 10, RefillAmount: 1, RefillPeriod: time.Hour})
	n.Balance = n.Capacity
	other := func(milli int64) []*Waiter {
		return []*Waiter{{Now: now + 1, Takes: []Take{{Name: "n", Milli: milli}}}}
	}
	for _, c := range []struct {
		name   string
		others []*Waiter
		want   int64 // under a capacity of 30
	}{
		{"no request", nil, 30_000},
		{"an admitted request", other(1000), 9000},
		{"an admitted request for 0 units", other(0), 10_000},
		{"a denied request", other(20_000), 10_000},
	} {
		item := &schema.Bucket{RefilledMS: used, Shards: 1, Limits: []schema.BucketLimit{n}}
		taken := evaluate(newImage(item, nil, 1, now), nil, []*Waiter{{Now: now, Takes: asks}})
		between := evaluate(taken.After, nil, c.others)
		back := []*Update{Compensation(now+2, asks, taken.AdmittedResults[0].Found)}
		left := evaluate(between.After, back, nil)
		if left.effects[0].net != -4000 {
			t.Errorf("%s in between: %d milli-units were taken, want -4000", c.name, left.effects[0].net)
		}
		raised := []weir.Limit{{Name: "n", Capacity: 30, RefillAmount: 1, RefillPeriod: time.Hour}}
		adapted := left.After.WithConfig(&Config{Limits: raised}, nil)
		if got := adapted.Limit("n").Peek(now+3, 1); got != c.want {
			t.Errorf("%s in between: %d milli-units under the raised capacity, want %d", c.name, got, c.want)
		}
	}
}

// TestLimitedRefundIsCopied checks that a commit that reduces a refund leaves the update in the queue
// as it is, because ExpectedImage reads it concurrently.
func TestLimitedRefundIsCopied(t *testing.T) {
	t.Parallel()
	stored := func(capacity int64) schema.BucketLimit {
		return schema.BucketLimit{
			Name: "rpm", Balance: 8_000, Capacity: capacity, Refill: 1_000, PeriodMS: 1_000,
		}
	}
	before := NewLimitImage(stored(20_000), 0, 1)
	before.BalanceMilli = 12_000
	u := Compensation(0, []Take{{Name: "rpm", Milli: 5_000}}, []LimitImage{before})
	image := newImage(&schema.Bucket{Shards: 1, Limits: []schema.BucketLimit{stored(10_000)}}, nil, 1, 0)
	c := &commit{itemState: &itemState{image: image}, Batch: Batch{Updates: []*Update{u}}}
	for range 2 { // the second time must not reduce it again
		c.limitRefunds()
		// The take left 7,000 of 12,000. Without it, the trim would have left 10,000.
		if got := c.Updates[0].Deltas[0].Milli; got != -3_000 {
			t.Errorf("the commit refunds %d, want 3,000", -got)
		}
	}
	if d := u.Deltas[0]; d.Milli != -5_000 || d.before == nil {
		t.Errorf("the update in the queue was changed to %+v", d)
	}
}

// TestLimitRefundsUnderRaisedCapacity compensates a take from a shard that had more than its share,
// after another process has raised the capacity. Nothing was trimmed, so all of it is refunded.
func TestLimitRefundsUnderRaisedCapacity(t *testing.T) {
	t.Parallel()
	l := schema.BucketLimit{Name: "n", Capacity: 200_000, Refill: 1000, PeriodMS: 1 << 40, Balance: 170_000}
	before := NewLimitImage(l, 0, 2)
	l.Capacity, l.Balance = 240_000, 70_000
	b := &schema.Bucket{Shards: 2, Limits: []schema.BucketLimit{l}}
	c := &commit{itemState: &itemState{image: newImage(b, nil, 2, 0)}}
	c.Updates = []*Update{Compensation(0, []Take{{Name: "n", Milli: 100_000}}, []LimitImage{before})}
	c.limitRefunds()
	if got := c.Updates[0].Deltas[0].Milli; got != -100_000 {
		t.Errorf("the refund is %d milli-units, want 100000 (of which 50000 go to the other shard)", -got)
	}
}
