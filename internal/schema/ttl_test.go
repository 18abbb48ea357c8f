package schema_test

import (
	"math"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// TestBucketSeconds compares the seconds with results of the Python library. In about one case of a
// hundred its doubles differ from the exact result, mostly by a second.
func TestBucketSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ capacity, refill, seconds, want, exact int64 }{
		{75, 50, 60, 630, 630},
		{5000, 5000, 3600, 25200, 25200},
		{1, 1000, 1, 0, 0},
		{1000, 1, 86_400, 604_800_000, 604_800_000},
		{1730, 7, 587, 1_015_509, 1_015_510},
		{20892, 10, 25, 365_609, 365_610},
		{731608, 7, 40075, 29_319_190_599, 29_319_190_600},
		{420781832722, 8, 94212, 34_687_360_771_354_432, 34_687_360_771_354_431},
		{418849301857, 62, 767840, 36_310_721_541_373_416, 36_310_721_541_373_421},
		{291526788090, 2, 698075, 712_276_469_085_743_616, 712_276_469_085_743_625},
	} {
		l := ok[schema.BucketLimit](t)(limit("a", c.capacity, c.refill, c.seconds).Bucket())
		got, ends := schema.BucketSeconds([]schema.BucketLimit{l}, schema.TTLMultiplier)
		if !ends || got != c.want {
			t.Errorf("%+v: got %d, %v", c, got, ends)
		}
	}
}

func TestBucketSecondsOfMany(t *testing.T) {
	t.Parallel()
	fast := schema.BucketLimit{Name: "fast", Capacity: 10_000, Refill: 10_000, PeriodMS: 1000}
	slow := schema.BucketLimit{Name: "slow", Capacity: 10_000, Refill: 1000, PeriodMS: 2500}
	quota := schema.BucketLimit{Name: "quota", Capacity: 10_000, PeriodMS: 1000}
	const most = math.MaxInt64
	huge := schema.BucketLimit{Name: "huge", Capacity: most, Refill: 1, PeriodMS: most}
	for _, c := range []struct {
		name       string
		limits     []schema.BucketLimit
		multiplier int64
		want       int64
		ends       bool
	}{
		{"one", []schema.BucketLimit{fast}, 7, 7, true},
		{"the slowest counts", []schema.BucketLimit{fast, slow, fast}, 3, 75, true},
		{"none", nil, 7, 0, false},
		{"switched off", []schema.BucketLimit{fast}, 0, 0, false},
		{"below 0", []schema.BucketLimit{fast}, -7, 0, false},
		{"nothing fills it", []schema.BucketLimit{fast, quota}, 7, 0, false},
		{"beyond all", []schema.BucketLimit{huge}, 7, math.MaxInt64 / 4, true},
	} {
		got, ends := schema.BucketSeconds(c.limits, c.multiplier)
		if got != c.want || ends != c.ends {
			t.Errorf("%s: got %d, %v, want %d, %v", c.name, got, ends, c.want, c.ends)
		}
	}
}

func TestTTL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nowMS, seconds, want int64 }{
		{1999, 7, 8}, {2000, 7, 9}, {-1, 0, -1}, {-1000, 0, -1}, {-1001, 0, -2},
		{math.MaxInt64, math.MaxInt64 / 4, math.MaxInt64/1000 + math.MaxInt64/4},
	} {
		if got := schema.TTL(c.nowMS, c.seconds); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
	for level, want := range map[weir.Level]bool{
		weir.LevelEntity: false, weir.LevelEntityDefault: false, weir.LevelResource: true,
		weir.LevelSystem: true, "": true,
	} {
		if got := schema.Expires(level); got != want {
			t.Errorf("level %q: got %v", level, got)
		}
	}
}
