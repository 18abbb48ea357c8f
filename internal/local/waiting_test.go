//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWaiting checks that a command begins only when it is told, which is after the state was
// written.
func TestWaiting(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, begin := range []bool{true, false} {
		l := &Server{Wait: []string{sh, "-c", `test -n "$(head -c 1 <&3)" && exec "$@"`, "waiting"}}
		begun := filepath.Join(t.TempDir(), "begun")
		cmd := exec.Command(sh, "-c", `echo begun >"$0"`, begun) //nolint:noctx // It ends by itself.
		tell, err := l.waiting(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := tell(begin); err != nil {
			t.Error(err)
		}
		if ended := cmd.Wait(); (ended == nil) != begin {
			t.Errorf("told %v: ended with %v", begin, ended)
		}
		if _, err := os.Stat(begun); errors.Is(err, fs.ErrNotExist) == begin {
			t.Errorf("told %v: %v", begin, err)
		}
	}
}
