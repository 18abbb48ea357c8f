package bucketitem

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-limiter/weir/aggregator"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/internal/soak"
)

// aheadTraffic is traffic on one bucket, and the shard counts that it has to lead to.
type aheadTraffic struct {
	phases []aheadPhase
	want   []int
	// beyond says that the traffic is more than DynamoDB allows for one item after a doubling, so
	// that the store may be quicker.
	beyond bool
}

type aheadPhase struct {
	rate int // writes a second
	time time.Duration
}

// steady is the same traffic for ten minutes; in a plain run for less if it is much.
func steady(rate int, want ...int) aheadTraffic {
	minutes := 10
	if rate > 100 {
		minutes = soak.Amount(1, minutes)
	}
	return aheadTraffic{[]aheadPhase{{rate, time.Duration(minutes) * time.Minute}}, want, false}
}

// run returns what is wrong with the decisions about the traffic; empty if nothing is.
func (a *aheadTraffic) run(j judge) (f *aheadFleet, wrong string) {
	f = newAheadFleet(j)
	var begins []time.Duration
	for _, p := range a.phases {
		begins = append(begins, time.Duration(f.nowMS-aheadStart)*time.Millisecond)
		f.run(p.rate, p.time)
	}
	var got []int
	for _, d := range f.doublings {
		got = append(got, d.to)
	}
	switch {
	case !slices.Equal(got, a.want):
		return f, fmt.Sprintf("the shard count became %v, want %v", f.doublings, a.want)
	case len(f.early) > 0:
		return f, fmt.Sprintf("earlier than the store may: %v", f.early)
	case f.storeAt > 0 && !a.beyond:
		return f, fmt.Sprintf("the store wanted to split after %d ms", f.storeAt-aheadStart)
	}
	for i, d := range f.doublings { // each in the first three seconds of its phase
		if len(begins) == len(f.doublings) && d.at > begins[i]+3*time.Second {
			return f, fmt.Sprintf("%d shards only after %v", d.to, d.at)
		}
	}
	return f, ""
}

// rightJudge returns the aggregator's decision.
func rightJudge() judge {
	w := &aggregator.Writes{}
	return func(records []*aggregator.Record, now time.Time) []aggregator.Doubling {
		return w.Due(records, sharding.HotWrites, now)
	}
}

// aheadCases are traffic of ten minutes and traffic that grows.
func aheadCases() map[string]aheadTraffic {
	return map[string]aheadTraffic{
		"50 writes a second":  steady(50),
		"100 writes a second": steady(100),
		"800 writes a second": steady(800, 2),
		"900 writes a second": steady(900, 2),
		"growing traffic": {
			[]aheadPhase{{900, 20 * time.Second}, {1900, 20 * time.Second}}, []int{2, 4}, false,
		},
		"a rush right after a doubling": {
			[]aheadPhase{{900, time.Second}, {8000, 2 * time.Second}}, []int{2, 4}, true,
		},
		"much traffic at once": {[]aheadPhase{{4000, 10 * time.Second}}, []int{2, 4, 8}, true},
	}
}

// TestSplitAhead checks when buckets are split ahead, and that it is before the store would split
// them because an item has no writes left (wcu). After it no shard has 800 writes a second.
func TestSplitAhead(t *testing.T) {
	t.Parallel()
	for name, a := range aheadCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, wrong := a.run(rightJudge())
			t.Logf("%d records; doublings %v, %d refused", f.written, f.doublings, f.refused)
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// TestSplitWithoutAggregator checks that the store itself does not split at 900 writes a second, and
// later than the aggregator at more: DynamoDB allows 1,000.
func TestSplitWithoutAggregator(t *testing.T) {
	t.Parallel()
	for rate, splits := range map[int]bool{900: false, 1100: true, 1900: true} {
		store, ahead := newAheadFleet(neverJudge), newAheadFleet(rightJudge())
		store.run(rate, 12*time.Second)
		ahead.run(rate, 2*time.Second)
		after := max(store.storeAt, aheadStart) - aheadStart // 0 for never
		t.Logf("%d writes a second: the store after %d ms, the aggregator %v", rate, after, ahead.doublings)
		if (store.storeAt > 0) != splits {
			t.Errorf("%d writes a second: the store split after %d ms, want that it splits: %v", rate, after, splits)
		}
		if len(ahead.doublings) == 0 || splits && ahead.doublings[0].at.Milliseconds() >= after {
			t.Errorf("%d writes a second: the aggregator was not earlier", rate)
		}
	}
}

func neverJudge([]*aggregator.Record, time.Time) []aggregator.Doubling { return nil }

// TestSplitAheadWrong checks that wrong rules of when to split are caught.
func TestSplitAheadWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		traffic aheadTraffic
		judge   judge
	}{
		"by the writes of a batch": {
			aheadTraffic{[]aheadPhase{{900, 15 * time.Second}}, []int{2}, false}, judgeByBatch,
		},
		"by the stored balance of wcu": {
			aheadTraffic{[]aheadPhase{{50, time.Minute}}, nil, false}, judgeByBalance,
		},
		"without regard to the shard count": {
			aheadTraffic{[]aheadPhase{{900, 10 * time.Second}}, []int{2}, false}, judgeByItem(),
		},
		"right after a doubling": {
			aheadTraffic{[]aheadPhase{{4000, 10 * time.Second}}, []int{2, 4, 8}, true}, judgeAtOnce(),
		},
		"from two seconds together": {
			aheadTraffic{[]aheadPhase{{500, 10 * time.Second}}, nil, false}, judgeByTwoSeconds(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, wrong := c.traffic.run(rightJudge()); wrong != "" {
				t.Errorf("the right rule: %s", wrong)
			}
			_, wrong := c.traffic.run(c.judge)
			if wrong == "" {
				t.Error("not caught")
			}
			t.Log(wrong)
		})
	}
}

// lastOf returns the bucket item of the last record of the first shard; nil if there is none.
func lastOf(records []*aggregator.Record) (first, last *schema.Bucket) {
	for _, r := range records {
		b, err := schema.ParseBucket(r.New)
		if err != nil || b.Shard != 0 {
			continue
		}
		if last = b; first == nil {
			first = b
		}
	}
	return first, last
}

func double(b *schema.Bucket) []aggregator.Doubling {
	return []aggregator.Doubling{{Bucket: b.ID(), From: b.Shards, To: 2 * b.Shards}}
}

// judgeByBatch goes by the writes of a batch, like the Python library's document.
func judgeByBatch(records []*aggregator.Record, _ time.Time) []aggregator.Doubling {
	first, last := lastOf(records)
	if last == nil || last.Writes.Consumed-first.Writes.Consumed < last.Writes.Capacity/5*4 {
		return nil
	}
	return double(last)
}

// judgeByBalance goes by the balance of wcu as stored, like the Python library's function.
func judgeByBalance(records []*aggregator.Record, _ time.Time) []aggregator.Doubling {
	_, last := lastOf(records)
	if last == nil || last.Writes.Balance >= last.Writes.Capacity/5 {
		return nil
	}
	return double(last)
}

// judgeByItem counts the writes of a second whatever the shard count.
func judgeByItem() judge {
	counts := make(map[int64]int)
	return func(records []*aggregator.Record, _ time.Time) []aggregator.Doubling {
		_, last := lastOf(records)
		for _, r := range records {
			if last != nil && r.Key == last.ID().Key() {
				counts[r.At.Unix()]++
			}
		}
		if last == nil || counts[records[len(records)-1].At.Unix()] < sharding.HotWrites {
			return nil
		}
		return double(last)
	}
}

// judgeAtOnce counts the writes with the same shard count, and does not wait after a doubling.
func judgeAtOnce() judge {
	counts := make(map[[2]int64]int)
	return func(records []*aggregator.Record, _ time.Time) []aggregator.Doubling {
		for _, r := range records {
			b, err := schema.ParseBucket(r.New)
			if err != nil || b.Shard != 0 {
				continue
			}
			second := [2]int64{r.At.Unix(), int64(b.Shards)}
			if counts[second]++; counts[second] == sharding.HotWrites {
				return double(b)
			}
		}
		return nil
	}
}

// judgeByTwoSeconds adds up the writes of two successive seconds.
func judgeByTwoSeconds() judge {
	w := &aggregator.Writes{}
	return func(records []*aggregator.Record, now time.Time) []aggregator.Doubling {
		moved := make([]*aggregator.Record, len(records))
		for i, r := range records {
			c := *r
			c.At, moved[i] = r.At.Truncate(2*time.Second), &c
		}
		return w.Due(moved, sharding.HotWrites, now)
	}
}
