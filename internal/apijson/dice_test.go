package apijson

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// dice draws the inputs of a property. The same seed draws the same inputs.
type dice struct{ *rand.Rand }

// property checks a property with many seeds. A failure names its seed.
func property(t *testing.T, holds func(t *testing.T, d dice)) {
	t.Helper()
	for seed := range uint64(5000) {
		holds(t, dice{rand.New(rand.NewPCG(seed, 0))})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// flip is true in one of two draws.
func (d dice) flip() bool { return d.IntN(2) == 0 }

// of draws one of several strings.
func (d dice) of(list ...string) string { return list[d.IntN(len(list))] }

// number draws any integer, with extremes and small ones more often.
func (d dice) number() int64 {
	switch d.IntN(4) {
	case 0:
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64}[d.IntN(5)]
	case 1:
		return int64(d.IntN(1000))
	}
	return int64(d.Uint64())
}

// text draws any string, with many characters that JSON escapes and many bytes that are not UTF-8.
func (d dice) text() string {
	var b strings.Builder
	for range d.IntN(6) {
		b.WriteString(d.of("", "acme", "gpt-4o", "/", "<", ">", "&", `"`, `\`, "\x00", "\x1f", "\x7f", "é", "\u2028",
			"\u2029", "\u00a0", "\ufeff", "\U0001F600", "\xff", "\xed\xa0\x80", "\xc3", string(rune(d.IntN(0x3000)))))
	}
	return b.String()
}

// time draws an instant, or the zero time.
func (d dice) time() time.Time {
	if d.flip() {
		return time.Time{}
	}
	return time.UnixMilli(d.Int64N(1<<50) - 1<<40)
}

// id draws a lease ID.
func (d dice) id() (id weir.LeaseID) {
	for i := range id {
		id[i] = byte(d.Uint64())
	}
	return id
}

// statuses draws up to three statuses, or nil.
func (d dice) statuses() []weir.LimitStatus {
	var limits []weir.LimitStatus
	for range d.IntN(4) {
		limits = append(limits, weir.LimitStatus{
			Entity: d.text(), Resource: d.text(), Limit: d.text(), Kind: weir.Kind(d.text()),
			Level: weir.Level(d.text()), Capacity: d.number(), Available: d.number(), Requested: d.number(),
			Exceeded: d.flip(), Shadow: d.flip(), AtLeast: d.flip(), RetryAfter: time.Duration(d.number()),
		})
	}
	return limits
}
