package console

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAtomicFileErrors checks that an error of writing names the flag and the intended file, not
// the temporary one, and that no file is left.
func TestAtomicFileErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "decisions")
	d, err := CreateAtomic("--decisions", name)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.file.Close(); err != nil { // writing then fails, as on a full disk
		t.Fatal(err)
	}
	_, err = d.Write(make([]byte, 128<<10))
	if want := "--decisions " + name + ": file already closed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	d.Discard()
	none, err := CreateAtomic("--decisions", "")
	none.Discard()
	if none != nil || err != nil || none.Commit() != nil {
		t.Errorf("got %v, %v without a name, want no file", none, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("got %v, %v left behind", left, err)
	}
}
