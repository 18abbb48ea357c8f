package estimator_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/weir-limiter/weir/estimator"
)

// warm returns an estimator that has learned the trace for a number of entities, and their keys.
func warm(b *testing.B, entities int) (*estimator.Estimator, []estimator.Key, []int64) {
	b.Helper()
	calls := trace(b)
	e := open(b, &estimator.Options{Keys: 20_000})
	keys := make([]estimator.Key, entities)
	for i := range keys {
		keys[i] = estimator.Key{Entity: fmt.Sprint("team-", i), Model: "openai/gpt-4o"}
		for n := range 20 {
			e.Learn(keys[i], 1, calls[(i+n)%len(calls)])
		}
	}
	return e, keys, calls
}

func BenchmarkEstimate(b *testing.B) {
	for _, entities := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", entities), func(b *testing.B) {
			e, keys, _ := warm(b, entities)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e.Estimate(keys[i%len(keys)])
			}
		})
	}
}

func BenchmarkLearn(b *testing.B) {
	for _, entities := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", entities), func(b *testing.B) {
			e, keys, calls := warm(b, entities)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e.Learn(keys[i%len(keys)], 100, calls[i%len(calls)])
			}
		})
	}
}

// BenchmarkParallel measures an estimate and learning the call after it, on all processors.
func BenchmarkParallel(b *testing.B) {
	e, keys, calls := warm(b, 1_000)
	var callers atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(callers.Add(1)) * 100; pb.Next(); i++ {
			k := keys[i%len(keys)]
			e.Learn(k, e.Estimate(k).Tokens, calls[i%len(calls)])
		}
	})
}

func BenchmarkReport(b *testing.B) {
	e, _, _ := warm(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		e.Report()
	}
}
