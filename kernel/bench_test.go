package kernel_test

import (
	"testing"

	"github.com/weir-limiter/weir/kernel"
)

// sink keeps the compiler from removing the code that is measured.
var sink int64

func BenchmarkGain(b *testing.B) {
	r := kernel.Rate{CapacityMilli: 600_000, RefillMilli: 600_000, PeriodMS: minute}
	now := int64(1_700_000_000_000)
	for b.Loop() {
		sink += r.Gain(now, now+17)
		now += 17
	}
}

func BenchmarkRefill(b *testing.B) {
	r := kernel.Rate{CapacityMilli: 600_000, RefillMilli: 600_000, PeriodMS: minute}
	balance, now := int64(0), int64(1_700_000_000_000)
	for b.Loop() {
		balance = r.Refill(balance, now, now+17) - 150
		now += 17
	}
	sink += balance
}

func BenchmarkWait(b *testing.B) {
	r := kernel.Rate{CapacityMilli: 600_000, RefillMilli: 600_000, PeriodMS: minute}
	now := int64(1_700_000_000_000)
	for b.Loop() {
		sink += r.Wait(-5000, 100_000, now)
		now += 17
	}
}

func BenchmarkCounters(b *testing.B) {
	for _, r := range []struct {
		name string
		rule
	}{
		{"bucket", bucket(1_000_000_000, 1_000_000_000, minute)},
		{"window", window(1_000_000_000, minute)},
		{"concurrency", concurrency(1_000_000_000, minute)},
		{"budget", budget(1_000_000_000, "day", "UTC")},
	} {
		b.Run(r.name, func(b *testing.B) {
			now := start
			c := r.counter(now, r.Definition)
			pieces := make([]kernel.Piece, 1)
			b.ReportAllocs()
			for b.Loop() {
				now++
				if _, _, fits := kernel.Judge(c, now, 2, r.Capacity, r.Capacity); !fits {
					b.Fatal("does not fit")
				}
				pieces[0], _ = c.Take(now, 2)
				c.Apply(now, kernel.Change{Pieces: pieces, From: 2, To: 1, Ends: true})
			}
		})
	}
}
