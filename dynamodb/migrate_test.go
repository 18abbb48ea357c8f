package dynamodb

import (
	"encoding/json"
	"testing"

	"github.com/weir-limiter/weir/internal/schema"
)

// oldReleases are releases that made the older layouts: the newest of each, and one in between.
func oldReleases() []string { return []string{"0.6.1", "0.7.0", "0.8.1", "0.9.1", "0.10.0"} }

func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, release := range oldReleases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			w := makeOldTable(t, release, 3)
			if _, err := Open(t.Context(), w.name, w.options()); err == nil {
				t.Error("opened")
			} else {
				t.Log(err)
			}
			dry, err := w.table().Migrate(t.Context(), true, nil)
			t.Logf("%+v %v", dry, err)
			m, err := w.table().Migrate(t.Context(), false, nil)
			t.Logf("%+v %v", m, err)
			for _, item := range w.oldItems() {
				b, _ := json.Marshal(schema.TypedJSON(item))
				t.Errorf("left: %s", b)
			}
			for _, item := range w.items() {
				b, _ := json.Marshal(schema.TypedJSON(item))
				t.Logf("%s", b)
			}
			t.Log(w.python(map[string]any{"reopen": true}))
		})
	}
}
