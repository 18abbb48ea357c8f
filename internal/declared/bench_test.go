package declared_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/httpapi"
	"github.com/weir-limiter/weir/internal/declared"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// BenchmarkApply applies a file with many entities to a store in memory, and then one without them.
// The time of an entity should not grow with their number.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1000, 3000, 9000} {
		var text strings.Builder
		text.WriteString("version: 1\nentities:\n  top: {}\n")
		for i := range n {
			fmt.Fprintf(&text,
				"  e%d: {parent: top, cascade: true, resources: {r: {limits: {rpm: {capacity: %d}}}}}\n", i, 1+i%9)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s, err := memory.Open(nil)
				if err != nil {
					b.Fatal(err)
				}
				l, err := limiter.New(s, nil)
				if err != nil {
					b.Fatal(err)
				}
				for _, text := range []string{text.String(), "version: 1\n"} {
					f := &httpapi.LimitsFile{Text: text, Yes: true}
					p, err := declared.New(l).ApplyLimits(b.Context(), f)
					if err != nil || p.Failed > 0 {
						b.Fatalf("%d of %d failed, %v", p.Failed, len(p.Changes), err)
					}
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/entity")
		})
	}
}
