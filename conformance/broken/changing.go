package broken

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// changeRules returns variants that break lines 8.2, 8.5 and 8.6: what stays when limits change.
func changeRules() []pointVariant {
	under := func(change func(d model.DefinitionPair) *weir.Limit) model.Points {
		return model.Points{Under: func(d model.DefinitionPair, _ *weir.Limit) *weir.Limit { return change(d) }}
	}
	return []pointVariant{
		{"a changed calendar forgets the old period", "8.5", key(func(k *model.Key, l *weir.Limit) {
			k.Name += l.Every
		})},
		{"a changed kind keeps its use", "8.5", key(func(k *model.Key, _ *weir.Limit) {
			if k.Kind != weir.Bucket {
				k.Kind = weir.Window
			}
		})},
		{"a changed limit is a new limit", "8.2", key(func(k *model.Key, l *weir.Limit) {
			k.Name = fmt.Sprintf("%s %d %v %v", k.Name, l.Capacity, l.Window, l.Timeout)
		})},
		{"an old period is forgotten after 64 others", "8.5", until(model.Taken, weir.Budget,
			func(t model.Expiry, right int64) int64 { return min(right, t.From+64*time.Hour.Milliseconds()) })},
		{"a settlement works under the old definition", "8.6",
			under(func(d model.DefinitionPair) *weir.Limit { return d.Own })},
		{"without a definition nothing is refunded", "8.6", under(func(d model.DefinitionPair) *weir.Limit {
			if d.InForce != nil {
				return d.InForce
			}
			c := *d.Own
			c.Capacity = 1
			return &c
		})},
	}
}

// changeFronts returns variants that handle a change of the definitions wrongly.
func changeFronts() []wrappedVariant {
	return []wrappedVariant{
		{"a change does not take effect", "O2: default changes",
			configuring(func(was, _ *weir.Definitions) *weir.Definitions { return was })},
		{"a removed limit stays", "E1: leftovers", configuring(func(was, is *weir.Definitions) *weir.Definitions {
			c := *is
			c.System = slices.Clone(is.System)
			for _, l := range was.System {
				if !has(is.System, l.Name) {
					c.System = append(c.System, l)
				}
			}
			return &c
		})},
		{"removed entities stay", "E1: leftovers", configuring(func(was, is *weir.Definitions) *weir.Definitions {
			if len(is.Entities) > 0 {
				return is
			}
			c := *is
			c.Entities = was.Entities
			return &c
		})},
		{"the last configuration stays", "P1: leftovers",
			configuring(func(was, is *weir.Definitions) *weir.Definitions {
				if len(is.System)+len(is.Resources)+len(is.Entities) == 0 {
					return was
				}
				return is
			})},
		{"a change takes effect with the one after it", "8.1", func(w *wrongWorld) {
			var next *weir.Definitions
			configuring(func(was, is *weir.Definitions) *weir.Definitions {
				now := next
				if next = is; now == nil {
					return was
				}
				return now
			})(w)
		}},
		{"a wrong change takes effect in part", "8.1", func(w *wrongWorld) {
			w.configure = func(d *weir.Definitions) error {
				err := w.World.Configure(d)
				if err != nil && len(d.System) > 0 {
					_ = w.World.Configure(&weir.Definitions{System: d.System[:1]})
				}
				return err
			}
		}},
		{"a removed limit is forgotten", "8.3", func(w *wrongWorld) {
			generation := 0
			w.points = key(func(k *model.Key, _ *weir.Limit) { k.Name = fmt.Sprint(k.Name, " ", generation) })
			configuring(func(was, is *weir.Definitions) *weir.Definitions {
				if len(was.System) == 0 && len(is.System) > 0 {
					generation++
				}
				return is
			})(w)
		}},
	}
}
