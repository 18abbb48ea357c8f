package broken

import (
	"cmp"
	"slices"

	"github.com/weir-limiter/weir"
)

// askedFronts returns variants that break line 4.5.
func askedFronts() []wrappedVariant {
	asked := func(change func(a *answer, d *weir.DeniedError) []weir.Subject) func(w *wrongWorld) {
		return denying(func(a *answer, d *weir.DeniedError) { d.Charges = change(a, d) })
	}
	// limited returns whose limits they are, each once.
	limited := func(d *weir.DeniedError, some func(s *weir.LimitStatus) bool) (of []weir.Subject) {
		for i := range d.Limits {
			at := weir.Subject{Entity: d.Limits[i].Entity, Resource: d.Limits[i].Resource}
			if some(&d.Limits[i]) && !slices.Contains(of, at) {
				of = append(of, at)
			}
		}
		return of
	}
	return []wrappedVariant{
		{"a denial names nobody", "4.5", asked(func(*answer, *weir.DeniedError) []weir.Subject { return nil })},
		{"a denial names the parent instead of who asked", "4.5",
			asked(func(_ *answer, d *weir.DeniedError) []weir.Subject {
				return limited(d, func(s *weir.LimitStatus) bool { return s.Exceeded })
			})},
		{"a denial names everybody who was judged", "4.5",
			asked(func(_ *answer, d *weir.DeniedError) []weir.Subject {
				return limited(d, func(*weir.LimitStatus) bool { return true })
			})},
		{"a denial names the first charge only", "4.5",
			asked(func(_ *answer, d *weir.DeniedError) []weir.Subject { return d.Charges[:1] })},
		{"a denial names who asked in order of names", "4.5",
			asked(func(_ *answer, d *weir.DeniedError) []weir.Subject {
				return slices.SortedFunc(slices.Values(d.Charges), func(a, b weir.Subject) int {
					return cmp.Or(cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Resource, b.Resource))
				})
			})},
		{"a denial names each entity once", "4.5",
			asked(func(_ *answer, d *weir.DeniedError) []weir.Subject {
				return slices.CompactFunc(slices.Clone(d.Charges), func(a, b weir.Subject) bool {
					return a.Entity == b.Entity
				})
			})},
	}
}
