package kernel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/kernel"
)

// The reference is the definition in numbers of any size, with saturation only at the very end.

var (
	bigMax = big.NewInt(math.MaxInt64)
	bigOne = big.NewInt(1)
)

// bigCredit returns ⌊t·r/p⌋. Div rounds down, because p is above zero.
func bigCredit(r kernel.Rate, t *big.Int) *big.Int {
	n := new(big.Int).Mul(t, big.NewInt(r.RefillMilli))
	return n.Div(n, big.NewInt(r.PeriodMS))
}

func bigGain(r kernel.Rate, from, to *big.Int) *big.Int {
	if to.Cmp(from) <= 0 {
		return new(big.Int)
	}
	return new(big.Int).Sub(bigCredit(r, to), bigCredit(r, from))
}

func bigRefill(r kernel.Rate, balance int64, from, to *big.Int) *big.Int {
	n := bigGain(r, from, to)
	n.Add(n, big.NewInt(balance))
	if capacity := big.NewInt(r.CapacityMilli); n.Cmp(capacity) > 0 {
		return capacity
	}
	return n
}

// bigWait searches for the first millisecond that fits, instead of computing it.
func bigWait(r kernel.Rate, balance, want, now int64) *big.Int {
	start, wanted := big.NewInt(now), big.NewInt(want)
	fits := func(d *big.Int) bool {
		return bigRefill(r, balance, start, new(big.Int).Add(start, d)).Cmp(wanted) >= 0
	}
	low, high := big.NewInt(-1), new(big.Int)
	for !fits(high) {
		low.Set(high)
		high.Lsh(high, 1).Add(high, bigOne)
	}
	for {
		middle := new(big.Int).Add(low, high)
		middle.Rsh(middle, 1)
		if middle.Cmp(low) == 0 {
			return high
		}
		if fits(middle) {
			high = middle
		} else {
			low = middle
		}
	}
}

func saturated(n *big.Int) int64 {
	if n.Cmp(bigMax) > 0 {
		return math.MaxInt64
	}
	return n.Int64()
}

// checkGain and the functions after it compare one call with the reference. The fuzz targets use
// them too.
func checkGain(t *testing.T, r kernel.Rate, from, to int64) {
	t.Helper()
	got, want := r.Gain(from, to), saturated(bigGain(r, big.NewInt(from), big.NewInt(to)))
	if got != want {
		t.Errorf("%+v: Gain(%d, %d) = %d, want %d", r, from, to, got, want)
	}
}

func checkRefill(t *testing.T, r kernel.Rate, balance, from, to int64) {
	t.Helper()
	got := r.Refill(balance, from, to)
	want := saturated(bigRefill(r, balance, big.NewInt(from), big.NewInt(to)))
	if got != want {
		t.Errorf("%+v: Refill(%d, %d, %d) = %d, want %d", r, balance, from, to, got, want)
	}
}

func checkWait(t *testing.T, r kernel.Rate, balance, want, now int64) {
	t.Helper()
	got, wanted := r.Wait(balance, want, now), int64(math.MaxInt64)
	if want <= r.CapacityMilli {
		wanted = saturated(bigWait(r, balance, want, now))
	}
	if got != wanted {
		t.Errorf("%+v: Wait(%d, %d, %d) = %d, want %d", r, balance, want, now, got, wanted)
	}
}

func checkFullAt(t *testing.T, r kernel.Rate, balance, now int64) {
	t.Helper()
	at := bigWait(r, balance, r.CapacityMilli, now)
	at.Add(at, big.NewInt(now))
	if got, want := r.FullAt(balance, now), saturated(at); got != want {
		t.Errorf("%+v: FullAt(%d, %d) = %d, want %d", r, balance, now, got, want)
	}
}

func checkRefund(t *testing.T, r kernel.Rate, balance, milli int64) {
	t.Helper()
	balance = min(balance, r.CapacityMilli)
	want := new(big.Int).Add(big.NewInt(balance), big.NewInt(milli))
	if capacity := big.NewInt(r.CapacityMilli); want.Cmp(capacity) > 0 {
		want = capacity
	}
	if got := r.Refund(balance, milli); got != want.Int64() {
		t.Errorf("%+v: Refund(%d, %d) = %d, want %d", r, balance, milli, got, want)
	}
}

func checkMilli(t *testing.T, units int64) {
	t.Helper()
	exact := new(big.Int).Mul(big.NewInt(units), big.NewInt(1000))
	want := int64(0)
	if exact.IsInt64() {
		want = exact.Int64()
	}
	if got, ok := kernel.Milli(units); got != want || ok != exact.IsInt64() {
		t.Errorf("Milli(%d) = %d, %t, want %d, %t", units, got, ok, want, exact.IsInt64())
	}
}

func checkUnits(t *testing.T, milli int64) {
	t.Helper()
	want := new(big.Int).Div(big.NewInt(milli), big.NewInt(1000)).Int64()
	if got := kernel.Units(milli); got != want {
		t.Errorf("Units(%d) = %d, want %d", milli, got, want)
	}
}

func TestAgainstReference(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	for range 20_000 {
		r := randomRate(rng)
		balance, want := randomInt64(rng), randomInt64(rng)
		from, to := randomInt64(rng), randomInt64(rng)
		checkGain(t, r, from, to)
		checkRefill(t, r, balance, from, to)
		checkRefund(t, r, balance, want&math.MaxInt64)
		checkMilli(t, want)
		checkUnits(t, balance)
		if t.Failed() {
			return
		}
	}
	for range 2_000 { // few, because the searches are slow
		r := randomRate(rng)
		balance, now := randomInt64(rng), randomInt64(rng)
		checkWait(t, r, balance, min(randomInt64(rng), r.CapacityMilli), now)
		checkFullAt(t, r, balance, now)
		if t.Failed() {
			return
		}
	}
}

// newRand returns a generator with a random seed, which it logs. WEIR_TEST_SEED sets the seed.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(soak.Seed(t), 0))
}

// randomInt64 returns numbers of every length and both signs, often next to a power of two, and
// instants of recent years.
func randomInt64(rng *rand.Rand) int64 {
	n := int64(rng.Uint64() >> (1 + rng.IntN(63)))
	switch rng.IntN(8) {
	case 0:
		n = 1_700_000_000_000 + rng.Int64N(1_000_000_000_000)
	case 1:
		n = int64(uint64(1)<<rng.IntN(64)) + rng.Int64N(5) - 2
	}
	if rng.IntN(3) == 0 {
		return -n
	}
	return n
}

func randomRate(rng *rand.Rand) kernel.Rate {
	return rateOf(randomInt64(rng), randomInt64(rng), randomInt64(rng))
}

// rateOf returns a valid rate for any three numbers.
func rateOf(capacityMilli, refillMilli, periodMS int64) kernel.Rate {
	above := func(n int64) int64 { return max(n&math.MaxInt64, 1) }
	return kernel.Rate{
		CapacityMilli: above(capacityMilli),
		RefillMilli:   above(refillMilli),
		PeriodMS:      above(periodMS),
	}
}
