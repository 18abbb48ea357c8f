package broken

import (
	"strings"

	"github.com/weir-limiter/weir"
)

// nameFronts returns variants that break line 3.9.
func nameFronts() []wrappedVariant {
	renaming := func(rename func(name string) string) func(w *wrongWorld) {
		return asking(func(_ *wrongWorld, r *weir.Request) error {
			r.Entity, r.Resource = rename(r.Entity), rename(r.Resource)
			return nil
		})
	}
	refusing := func(any string) func(w *wrongWorld) {
		return asking(func(_ *wrongWorld, r *weir.Request) error {
			if strings.ContainsAny(r.Entity+r.Resource, any) {
				return refused(weir.Invalid)
			}
			return nil
		})
	}
	return []wrappedVariant{
		{"names are folded", "3.9", renaming(strings.ToLower)},
		{"names are normalized", "3.9", renaming(strings.NewReplacer("e\u0301", "\u00e9").Replace)},
		{"names are decoded like a URL", "3.9", renaming(strings.NewReplacer("%61", "a").Replace)},
		{"spaces around a name are removed", "3.9", renaming(strings.TrimSpace)},
		{"a name is cut to 64 bytes", "3.9",
			renaming(func(name string) string { return name[:min(len(name), 64)] })},
		{"reserved names are taken", "3.9",
			renaming(strings.NewReplacer("_default_", "default", "$SYSTEM", "system").Replace)},
		{"characters that cannot be printed are taken", "3.9",
			renaming(strings.NewReplacer("\u202e", "").Replace)},
		{"a model with a colon is refused", "3.9", refusing(":")},
		{"letters beyond ASCII are refused", "3.9", refusing("é日")},
	}
}
