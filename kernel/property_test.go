package kernel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-limiter/weir/kernel"
)

// A slow limit that is refilled very often would gain nothing if each step were rounded on its own.
func TestFrequentRefillsLoseNothing(t *testing.T) {
	t.Parallel()
	const start = int64(1_700_000_000_123)
	for _, c := range []struct {
		name string
		rate kernel.Rate
		step int64
		want int64 // after a day, up to a milli-unit more or less
	}{
		{"ten a day, every 100 ms", kernel.Rate{RefillMilli: 10_000, PeriodMS: day}, 100, 10_000},
		{"one a day, every 100 ms", kernel.Rate{RefillMilli: 1000, PeriodMS: day}, 100, 1000},
		{"seven a week, every 97 ms", kernel.Rate{RefillMilli: 7000, PeriodMS: 7 * day}, 97, 1000},
		{"600 a minute, every 7 ms", kernel.Rate{RefillMilli: 600_000, PeriodMS: minute}, 7, 864_000_000},
	} {
		c.rate.CapacityMilli = math.MaxInt64
		balance, at := int64(0), start
		for at < start+day {
			next := min(at+c.step, start+day)
			balance = c.rate.Refill(balance, at, next)
			at = next
		}
		if balance < c.want || balance > c.want+1 {
			t.Errorf("%s: balance after a day = %d, want %d or one more", c.name, balance, c.want)
		}
		if got := c.rate.Gain(start, at); balance != got {
			t.Errorf("%s: in steps %d, at once %d", c.name, balance, got)
		}
	}
}

func TestGainsAddUp(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	gained := 0
	for range 5000 {
		r := randomRate(rng)
		r.CapacityMilli = math.MaxInt64
		cuts := randomCuts(rng)
		first, last := cuts[0], cuts[len(cuts)-1]
		whole := r.Gain(first, last)
		if whole == math.MaxInt64 {
			continue // saturated, and the parts may be too
		}
		sum, balance := int64(0), int64(0)
		for i := range cuts[1:] {
			sum += r.Gain(cuts[i], cuts[i+1])
			balance = r.Refill(balance, cuts[i], cuts[i+1])
		}
		if sum != whole || balance != whole {
			t.Fatalf("%+v: %d at once, %d in parts, balance %d: %d", r, whole, sum, balance, cuts)
		}
		if whole > 0 {
			gained++
		}
	}
	if gained < 500 {
		t.Errorf("only %d intervals gained anything", gained)
	}
}

// Any pattern of takes and refills gives the same as one refill, as long as the capacity is not
// reached. An instant that is earlier than the last, or the same, changes nothing.
func TestPartialRefillsEqualOneRefill(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	for range 200 {
		r := kernel.Rate{
			CapacityMilli: math.MaxInt64,
			RefillMilli:   1 + rng.Int64N(1_000_000),
			PeriodMS:      1 + rng.Int64N(day),
		}
		start := 1_700_000_000_000 + rng.Int64N(day)
		balance, stamp, taken := int64(0), start, int64(0)
		for range 100 {
			now := stamp + rng.Int64N(2*second) - second/2 // sometimes a clock that is behind
			balance = r.Refill(balance, stamp, now)
			stamp = max(stamp, now)
			cost := rng.Int64N(1000)
			balance, taken = balance-cost, taken+cost
		}
		if got, want := balance, r.Gain(start, stamp)-taken; got != want {
			t.Fatalf("%+v from %d to %d: balance %d, want %d", r, start, stamp, got, want)
		}
	}
}

func TestWaitIsMinimal(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	waited := 0
	for range 50_000 {
		r := randomRate(rng)
		balance, now := randomInt64(rng), randomInt64(rng)
		want := min(randomInt64(rng), r.CapacityMilli)
		d := r.Wait(balance, want, now)
		if d == math.MaxInt64 || d > math.MaxInt64-max(now, 0) {
			continue // saturated, or beyond the instants that exist
		}
		if got := r.Refill(balance, now, now+d); got < want {
			t.Fatalf("%+v: Refill(%d, %d, +%d) = %d, want %d", r, balance, now, d, got, want)
		}
		if d == 0 {
			continue
		}
		waited++
		if got := r.Refill(balance, now, now+d-1); got >= want {
			t.Fatalf("%+v: Refill(%d, %d, +%d-1) = %d, fits %d early", r, balance, now, d, got, want)
		}
	}
	if waited < 1000 {
		t.Errorf("only %d waits were checked", waited)
	}
}

// The gain of any interval is less than a milli-unit from the exact one: |gain·p − Δ·r| < p.
func TestGainIsWithinAMilliUnit(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	for range 20_000 {
		r := kernel.Rate{RefillMilli: 1 + rng.Int64N(1<<20), PeriodMS: 1 + rng.Int64N(1<<30)}
		from := rng.Int64N(1<<42) - 1<<41
		span := rng.Int64N(1 << 30)
		off := r.Gain(from, from+span)*r.PeriodMS - span*r.RefillMilli
		if off <= -r.PeriodMS || off >= r.PeriodMS {
			t.Fatalf("%+v: Gain(%d, +%d) is %d/%d milli-units off", r, from, span, off, r.PeriodMS)
		}
	}
}

// randomCuts returns some instants in order, close together or far apart.
func randomCuts(rng *rand.Rand) []int64 {
	cuts := make([]int64, 2+rng.IntN(20))
	around, width := randomInt64(rng)/2, 1+rng.Int64N(int64(1)<<(1+rng.IntN(61)))
	for i := range cuts {
		cuts[i] = around + rng.Int64N(width)
	}
	slices.Sort(cuts)
	return cuts
}
