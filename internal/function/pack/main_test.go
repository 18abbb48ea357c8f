package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPack checks that a program is packed under the name and with the mode that Lambda starts, and
// that the time of the file changes nothing.
func TestPack(t *testing.T) {
	dir := t.TempDir()
	code := bytes.Repeat([]byte("program "), 10_000)
	var packed [2][]byte
	for i, at := range []time.Time{time.Unix(1_700_000_000, 0), time.Unix(1_800_000_000, 0)} {
		program, output := filepath.Join(dir, "p"), filepath.Join(dir, "p.zip")
		if err := os.WriteFile(program, code, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(program, at, at); err != nil {
			t.Fatal(err)
		}
		if err := run(output, program); err != nil {
			t.Fatal(err)
		}
		var err error
		if packed[i], err = os.ReadFile(output); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("the same program gave two archives")
	}
	r, err := zip.NewReader(bytes.NewReader(packed[0]), int64(len(packed[0])))
	if err != nil || len(r.File) != 1 {
		t.Fatalf("got %v, %v; want one file", r.File, err)
	}
	f := r.File[0]
	if f.Name != "bootstrap" || f.Mode() != 0o755 {
		t.Errorf("got %s with mode %v", f.Name, f.Mode())
	}
	in, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, code) {
		t.Errorf("got %d bytes and %v, want the program", len(got), err)
	}
}
