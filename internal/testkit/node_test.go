package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNode checks that a package is installed, and that a list is installed once.
func TestNode(t *testing.T) {
	t.Parallel()
	const pinned = "@copilotkit/aimock@1.43.0"
	modules := Node(t, pinned)
	if again := Node(t, pinned); again != modules {
		t.Errorf("got %s and then %s", modules, again)
	}
	if _, err := os.Stat(filepath.Join(modules, "@copilotkit", "aimock", "package.json")); err != nil {
		t.Error(err)
	}
}
