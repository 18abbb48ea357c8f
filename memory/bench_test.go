package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/memory"
)

// BenchmarkReserveSettle measures a reservation and its completion in the store, without resolving
// and planning, which the limiter does.
func BenchmarkReserveSettle(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("limits=%d", n), func(b *testing.B) {
			limits, costs := benchLimits(n)
			w := newWorld(b, limits...)
			r := w.reservation(charge(costs))
			p, err := r.Plan(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			out := p.Outcome()
			s := &memory.Settlement{Verb: weir.VerbComplete, Lifetime: time.Hour, Memory: time.Minute}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				w.now = w.now.Add(time.Millisecond)
				for i := range out.Taken {
					out.Taken[i].Pieces = out.Taken[i].Pieces[:0]
				}
				if err := w.store.Reserve(ctx, w.now, p, out); err != nil || out.Denied {
					b.Fatal(out, err)
				}
				s.Holdings, s.Totals, s.Limits = p.Holdings(out), s.Totals[:0], s.Limits[:0]
				for i := range s.Holdings {
					s.Totals = append(s.Totals, s.Holdings[i].Parts)
					s.Limits = append(s.Limits, s.Holdings[i].Limit)
				}
				if _, err := memory.Settle(w.store, w.now, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchLimits(n int) ([]weir.Limit, weir.Costs) {
	limits := []weir.Limit{
		named("a", bucket(1_000_000, 1_000_000, time.Second)),
		named("b", bucket(1_000_000, 1_000_000, time.Second)),
		named("c", window(1_000_000, time.Minute)),
		named("d", concurrency(1000, time.Minute)),
	}[:n]
	costs := weir.Costs{}
	for i := range limits {
		costs[limits[i].Name] = 1
	}
	return limits, costs
}
