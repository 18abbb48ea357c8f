package bucketitem

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLevelMoves(t *testing.T) {
	t.Parallel()
	const none = -1 << 62 // the shard does not exist
	for name, tc := range map[string]struct {
		has      []int64 // of shards with a share of 100_000
		overflow int64
		want     []int64
		paid     bool
	}{
		"nothing to do":              {[]int64{5, 100_000}, 0, []int64{0, 0}, true},
		"room on another shard":      {[]int64{100_000, 30_000}, 20_000, []int64{0, 20_000}, true},
		"room on two":                {[]int64{100_000, 90_000, 95_000}, 12_000, []int64{0, 10_000, 2000}, true},
		"more than there is room":    {[]int64{100_000, 90_000}, 50_000, []int64{0, 10_000}, true},
		"a missing shard":            {[]int64{100_000, none}, 100_000, []int64{0, 100_000}, true},
		"a missing shard comes last": {[]int64{60_000, none}, 50_000, []int64{40_000, 10_000}, true},
		"its units are elsewhere":    {[]int64{170_000, none}, 50_000, []int64{0, 30_000}, true},
		"a debt is repaid first":     {[]int64{-5000, 30_000}, 6000, []int64{6000, 0}, true},
		"the fullest pays":           {[]int64{-5000, 30_000, 40_000}, 0, []int64{5000, 0, -5000}, true},
		"two pay":                    {[]int64{-50_000, 30_000, 40_000}, 0, []int64{50_000, -10_000, -40_000}, true},
		"less than a unit":           {[]int64{-999, 30_000}, 0, []int64{0, 0}, true},
		"all in debt":                {[]int64{-50_000, 20_000}, 0, []int64{35_000, -35_000}, false},
		"an odd debt":                {[]int64{-50_001, 20_000}, 0, []int64{35_000, -35_001}, false},
		"the same debt":              {[]int64{-1500, -1400}, 0, []int64{0, 0}, false},
		"a missing shard pays none":  {[]int64{-50_000, none, 20_000}, 0, []int64{35_000, 0, -35_000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shards := make([]shardBalance, len(tc.has))
			for i, has := range tc.has {
				shards[i] = shardBalance{has: has, share: 100_000, whole: 100_000 * int64(len(tc.has))}
				if has == none {
					shards[i].has, shards[i].missing = 0, true
				}
			}
			got, paid := levelMoves(shards, tc.overflow, false)
			if !slices.Equal(got, tc.want) || paid != tc.paid {
				t.Errorf("got %v, %v, want %v, %v", got, paid, tc.want, tc.paid)
			}
		})
	}
}

// TestLevelMovesAtRandom checks what holds of every move: no unit is made, none but an overflow is
// lost, no shard is filled above its share, and no shard is in debt beside one that has units.
func TestLevelMovesAtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		shards := make([]shardBalance, 1<<(1+random.IntN(4)))
		var before, gap int64
		for i := range shards {
			shards[i] = shardBalance{share: 1000_000, whole: 1000_000 * int64(len(shards))}
			if i > 0 && random.IntN(5) == 0 {
				shards[i].missing = true
				continue
			}
			shards[i].has = random.Int64N(3000_000) - 1700_000
			before += shards[i].has
			gap += max(0, shards[i].share-shards[i].has)
		}
		overflow := random.Int64N(2) * random.Int64N(2000_000)
		moves, _ := levelMoves(shards, overflow, false)
		var after, deepest, fullest int64
		for i, s := range shards {
			has := s.has + moves[i]
			after, deepest = after+has, min(deepest, has)
			if s.missing && has < 0 || moves[i] > 0 && has > s.share {
				t.Fatalf("%+v, overflow %d: shard %d has %d", shards, overflow, i, has)
			}
			if !s.missing {
				fullest = max(fullest, has)
			}
		}
		most := before + max(0, min(overflow, shards[0].whole-before))
		if after > most || after < min(most, before+min(overflow, gap))-int64(len(shards)) {
			t.Fatalf("%+v, overflow %d: had %d, has %d", shards, overflow, before, after)
		}
		if deepest <= -1000 && fullest > 0 {
			t.Fatalf("%+v, overflow %d: moves %v leave a debt of %d beside %d", shards, overflow, moves, -deepest, fullest)
		}
	}
}
