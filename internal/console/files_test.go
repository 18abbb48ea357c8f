package console

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWholeFileBlame: what fails while a file is written names the flag and the file that was
// wanted, not the one with another name. Errors about anything else stay.
func TestWholeFileBlame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "decisions")
	d, err := CreateWhole("--decisions", name)
	if err != nil {
		t.Fatal(err)
	}
	_, other := os.Open(filepath.Join(dir, "other"))
	if got := d.NameError(other); !errors.Is(got, os.ErrNotExist) || got.Error() != other.Error() {
		t.Errorf("got %v, want %v", got, other)
	}
	if err := d.file.Close(); err != nil { // as a disk that is full fails
		t.Fatal(err)
	}
	_, err = d.Out.Write(make([]byte, 128<<10))
	if got, want := d.NameError(err), "--decisions "+name+": file already closed"; got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Discard()
	if got := (*AtomicFile)(nil).NameError(other); got.Error() != other.Error() {
		t.Errorf("got %v without a file, want %v", got, other)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("got %v, %v left behind", left, err)
	}
}
