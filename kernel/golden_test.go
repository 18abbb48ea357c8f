package kernel_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/weir-limiter/weir/kernel"
)

// vector is a case of testdata/bucket-vectors.json, which was produced by the Python library
// zae-limiter 0.17, with which weir shares the DynamoDB table. The library rounds each elapsed time
// on its own, so its balances may be a milli-unit below weir's. Its refill time (want_rf) is
// corrected for that and cannot be compared.
type vector struct {
	Tk  int64 `json:"tk"` // balance, milli-units
	Rf  int64 `json:"rf"` // instant of the balance, ms
	Now int64 `json:"now"`
	Cp  int64 `json:"cp"` // capacity, milli-units
	Ra  int64 `json:"ra"` // refill, milli-units
	Rp  int64 `json:"rp"` // period, ms

	Req        int64   `json:"req"`    // try_consume, units
	Amount     int64   `json:"amount"` // force_consume, units; negative gives back
	OK         bool    `json:"ok"`
	Available  int64   `json:"available"`   // units
	RetryAfter float64 `json:"retry_after"` // seconds, to the millisecond
	WantTk     int64   `json:"want_tk"`

	Deficit int64   `json:"deficit"` // retry_after, milli-units
	Want    float64 `json:"want"`    // retry_after, seconds
}

func (v vector) rate() kernel.Rate {
	return kernel.Rate{CapacityMilli: v.Cp, RefillMilli: v.Ra, PeriodMS: v.Rp}
}

// refilled returns the balance at v.Now, or at v.Rf if that is later.
func (v vector) refilled() int64 { return v.rate().Refill(v.Tk, v.Rf, v.Now) }

func loadVectors(t *testing.T, section string) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/bucket-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var sections map[string][]vector
	if err := json.Unmarshal(data, &sections); err != nil {
		t.Fatal(err)
	}
	vectors := sections[section]
	if len(vectors) != 300 {
		t.Fatalf("%s: %d vectors, want 300", section, len(vectors))
	}
	return vectors
}

// checkBalance allows the milli-unit by which the library's balance may be lower.
func checkBalance(t *testing.T, v vector, got int64) {
	t.Helper()
	if got < v.WantTk || got > v.WantTk+1 {
		t.Errorf("%+v: balance %d, want %d or one more", v, got, v.WantTk)
	}
	if v.Now < v.Rf && got != v.WantTk {
		t.Errorf("%+v: the clock went back and the balance moved to %d", v, got)
	}
}

func TestGoldenRefill(t *testing.T) {
	t.Parallel()
	back := 0
	for _, v := range loadVectors(t, "refill") {
		got := v.refilled()
		checkBalance(t, v, got)
		if v.Now < v.Rf {
			back++
			if got != v.Tk {
				t.Errorf("%+v: the clock went back and the balance moved to %d", v, got)
			}
		}
	}
	t.Logf("refill: 300 compared, the clock went back in %d", back)
	if back != 34 {
		t.Errorf("the clock went back in %d vectors, want 34", back)
	}
}

func TestGoldenTryConsume(t *testing.T) {
	t.Parallel()
	admitted, denied, never := 0, 0, 0
	for _, v := range loadVectors(t, "try_consume") {
		r, balance := v.rate(), v.refilled()
		want, ok := kernel.Milli(v.Req)
		if !ok {
			t.Fatalf("%+v: the request does not fit", v)
		}
		if got := kernel.Units(balance); got != v.Available {
			t.Errorf("%+v: available %d, want %d", v, got, v.Available)
		}
		wait := r.Wait(balance, want, max(v.Now, v.Rf))
		if got := wait == 0; got != v.OK {
			t.Errorf("%+v: admitted %t with %d, want %t", v, got, balance, v.OK)
		}
		switch {
		case want > v.Cp:
			never++
			if wait != math.MaxInt64 {
				t.Errorf("%+v: asks more than the capacity, wait %d", v, wait)
			}
			checkBalance(t, v, balance)
		case v.OK:
			admitted++
			checkBalance(t, v, balance-want)
		default:
			denied++
			checkBalance(t, v, balance)
			checkRetry(t, v, balance, want)
		}
	}
	t.Logf("try_consume: %d admitted, %d denied for a time, %d never satisfiable",
		admitted, denied, never)
	if admitted != 84 || denied != 143 || never != 73 {
		t.Errorf("admitted, denied, never = %d, %d, %d, want 84, 143, 73", admitted, denied, never)
	}
}

// checkRetry checks that a denied request fits after its wait, and not a millisecond earlier.
func checkRetry(t *testing.T, v vector, balance, want int64) {
	t.Helper()
	r, from := v.rate(), max(v.Now, v.Rf)
	wait := r.Wait(balance, want, from)
	if got := r.Refill(balance, from, from+wait); got < want {
		t.Errorf("%+v: after %d ms the balance is %d, want %d", v, wait, got, want)
	}
	if got := r.Refill(balance, from, from+wait-1); got >= want {
		t.Errorf("%+v: a wait of %d ms is too long", v, wait)
	}
	if limit := milliseconds(v.RetryAfter); v.Now >= v.Rf && wait > limit {
		t.Errorf("%+v: wait %d ms, want at most %d", v, wait, limit)
	}
}

func TestGoldenRetryAfter(t *testing.T) {
	t.Parallel()
	sooner, compared := 0, 0
	for _, v := range loadVectors(t, "retry_after") {
		v.Cp, v.RetryAfter = v.Deficit, v.Want
		// The first millisecond that fits depends on the phase of the instant.
		for _, now := range []int64{0, 1, 1_700_000_000_000, 1_700_000_012_345, 1_723_456_789_999} {
			v.Now, v.Rf = now, now
			checkRetry(t, v, 0, v.Deficit)
			compared++
			if v.rate().Wait(0, v.Deficit, now) < milliseconds(v.Want) {
				sooner++
			}
		}
	}
	t.Logf("retry_after: %d compared (300 at 5 instants), %d sooner than the library",
		compared, sooner)
	if compared != 1500 {
		t.Errorf("%d compared, want 1500", compared)
	}
}

func TestGoldenForceConsume(t *testing.T) {
	t.Parallel()
	compared, above := 0, 0
	for _, v := range loadVectors(t, "force_consume") {
		cost, ok := kernel.Milli(v.Amount)
		if !ok {
			t.Fatalf("%+v: the amount does not fit", v)
		}
		// Refill over no time trims the balance after a refund.
		got := v.rate().Refill(v.refilled()-cost, v.Now, v.Now)
		if v.WantTk > v.Cp {
			above++ // the library lets a refund raise the balance above the capacity
			if got != v.Cp {
				t.Errorf("%+v: balance %d, want the capacity", v, got)
			}
			continue
		}
		compared++
		checkBalance(t, v, got)
	}
	t.Logf("force_consume: %d compared, %d refunds above the capacity", compared, above)
	if compared != 226 || above != 74 {
		t.Errorf("compared %d, above %d, want 226, 74", compared, above)
	}
}

func milliseconds(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }
