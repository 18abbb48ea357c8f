package local_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-limiter/weir/internal/local"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestFiles checks that the list has what Maven resolves.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := testkit.DynamoDBFiles(t)
	list := local.Files()
	if len(list) < 60 {
		t.Errorf("got %d files", len(list))
	}
	for i := range list {
		f := &list[i]
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Error(err)
			continue
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != f.SHA256 {
			t.Errorf("%s: Maven's has the sum %s, the list %s", f.Path, got, f.SHA256)
		}
	}
}

// TestLauncher checks that the compiled launcher belongs to its source. Only the release of Java
// that has compiled it makes the same bytes.
func TestLauncher(t *testing.T) {
	t.Parallel()
	dir := testkit.DynamoDBFiles(t)
	says, err := exec.CommandContext(t.Context(), "javac", "-version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(says), "javac 17.") {
		t.Skipf("no compiler of Java 17: %s %v", says, err)
	}
	out := t.TempDir()
	testkit.Run(t, exec.CommandContext(t.Context(), "javac", "--release", "17", "-g:none",
		"-cp", filepath.Join(dir, "*"), "-d", out, filepath.Join("launcher", "WeirLocal.java")))
	made, err := os.ReadFile(filepath.Join(out, "WeirLocal.class"))
	if err != nil {
		t.Fatal(err)
	}
	has, err := os.ReadFile(filepath.Join("launcher", "WeirLocal.class"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, has) {
		t.Error("the class is not what the source compiles to: run make dynamodb-files")
	}
}
