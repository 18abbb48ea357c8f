package sharding_test

import (
	"testing"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// TestMaySplit checks which buckets may be split.
func TestMaySplit(t *testing.T) {
	t.Parallel()
	limit := func(capacity, refill int64) schema.BucketLimit {
		return schema.BucketLimit{
			Name: "n", Capacity: capacity * 1000, Refill: refill * 1000, PeriodMS: 60_000,
		}
	}
	of := func(limits ...schema.BucketLimit) *schema.Bucket { return &schema.Bucket{Limits: limits} }
	unjudged := limit(320, 320)
	unjudged.Unjudged = []string{"ws"}
	for name, c := range map[string]struct {
		bucket *schema.Bucket
		shards int
		want   bool
	}{
		"as far as it divides":           {of(limit(320, 32)), 32, true},
		"not into more than 32":          {of(limit(6400, 6400)), 64, false},
		"not below ten units":            {of(limit(72, 72)), 8, false},
		"ten units":                      {of(limit(80, 80)), 8, true},
		"a capacity that is not even":    {of(limit(321, 320)), 16, false},
		"a refill that is not even":      {of(limit(320, 321)), 16, false},
		"thousandths divide":             {of(limit(321, 321)), 8, true},
		"the smallest of two limits":     {of(limit(3200, 3200), limit(20, 20)), 4, false},
		"a disabled bucket":              {&schema.Bucket{Disabled: true}, 2, false},
		"a schedule":                     {&schema.Bucket{Unjudged: []string{"sched"}}, 2, false},
		"a limit with a window":          {of(limit(320, 320), unjudged), 2, false},
		"the rest of a deleted item":     {&schema.Bucket{Stub: true}, 2, false},
		"a limit without its capacity":   {of(schema.BucketLimit{Incomplete: true}), 2, false},
		"a limit that is never refilled": {of(limit(320, 0)), 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sharding.MaySplit(c.bucket, c.shards); got != c.want {
				t.Errorf("into %d: got %v, want %v", c.shards, got, c.want)
			}
		})
	}
}
