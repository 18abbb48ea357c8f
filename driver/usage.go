package driver

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// SumUsage yields the sums of records over longer windows. The records come in the order of a
// [weir.UsagePage], and so do the sums. It ends at the first error.
func SumUsage(
	records iter.Seq2[weir.Usage, error], w weir.UsageWindow,
) iter.Seq2[weir.Usage, error] {
	if w == weir.Hourly {
		return records
	}
	return func(yield func(weir.Usage, error) bool) {
		sums := make(map[string]*weir.Usage) // by entity, of one resource and window
		flush := func() bool {
			for _, entity := range slices.Sorted(maps.Keys(sums)) {
				if !yield(*sums[entity], nil) {
					return false
				}
			}
			clear(sums)
			return true
		}
		var last weir.Usage
		for r, err := range records {
			start := w.Start(r.Start)
			if err == nil && (r.Resource != last.Resource || !start.Equal(last.Start)) && !flush() {
				return
			}
			last.Resource, last.Start = r.Resource, start
			sum := sums[r.Entity]
			if sum == nil && err == nil {
				sum = &weir.Usage{Entity: r.Entity, Resource: r.Resource, Window: w}
				sums[r.Entity] = sum
			}
			if err == nil {
				err = sum.Add(&r)
			}
			if err != nil {
				yield(weir.Usage{}, err)
				return
			}
			sum.Start, sum.End, sum.Windows = start, w.End(start), 1
		}
		flush()
	}
}

// CompareUsage compares the places of two records in the order of a [weir.UsagePage] for q. Of both
// it uses Entity, Resource and Start.
func CompareUsage(q *weir.UsageQuery, a, b *weir.Usage) int {
	if q.Entity == "" {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Entity, b.Entity))
	}
	return cmp.Or(CompareResources(a.Resource, b.Resource), a.Start.Compare(b.Start))
}

// CompareResources compares resources as a DynamoDB table orders its keys, in which each is
// followed by '#': a! comes before a, and a$ after it.
func CompareResources(a, b string) int {
	if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return strings.Compare(a+"#", b+"#")
	}
	return strings.Compare(a, b)
}
