package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestInstall installs weir with the go command, from a folder that has only the module, and runs the
// demo in an empty folder.
func TestInstall(t *testing.T) {
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "git", "-C", clone, "rev-parse", "HEAD").Run(); err != nil {
		t.Skipf("not a clone: %v", err)
	}
	proxy, bin := t.TempDir(), t.TempDir()
	if err := write(clone, proxy, "v0.1.0", time.Now()); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = t.TempDir()
		// The module cache is not the user's own, which must not keep a version that was never published.
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOWORK=off", "GOFLAGS=-modcacherw", "CGO_ENABLED=0",
			"GOPROXY=file://"+proxy+","+before(t), "GONOSUMDB="+path, "GOMODCACHE="+t.TempDir())
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, said)
		}
		return string(said)
	}
	run("go", "install", path+"/cmd/weir@v0.1.0")
	weir := filepath.Join(bin, "weir")
	if got, want := run(weir, "version"), "weir v0.1.0 go"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got := run(weir, "demo", "--exit", "--speed", "100000", "--listen", "127.0.0.1:0")
	if want := "\nsent  8,819 calls, "; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q", got, want)
	}
}

// before returns a proxy that has every module in the user's cache, so that none is fetched again.
func before(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	return "file://" + filepath.Join(lines[0], "cache", "download") + "," + lines[1]
}

// TestMistakes checks that a version that the go command would refuse is refused first.
func TestMistakes(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1", "latest"} {
		folder := t.TempDir()
		err := write("../..", folder, version, time.Now())
		if err == nil || !strings.Contains(err.Error(), "must be like v0.1.0") {
			t.Errorf("%q: got %v, want a mistake", version, err)
		}
		if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
			t.Errorf("%q: got %v, %v, want no file", version, files, err)
		}
	}
}
