package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestRun unpacks the layers of an image, and starts a server in them as the image's user. Only the
// user's own folder can be written to, as in a container with a read-only root.
func TestRun(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may change the root folder")
	}
	root := t.TempDir()
	unpack(t, root)
	limits := "version: 1\nresources: {llm: {limits: {rpm: {capacity: 1}}}}\n"
	if err := os.WriteFile(filepath.Join(root, "etc/limits.yaml"), []byte(limits), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/weir", "serve", "--limits", "/etc/limits.yaml", "--listen", "127.0.0.1:0",
		"--store", "memory:?snapshot=/var/lib/weir/state")
	cmd.Env, cmd.Dir = []string{"PATH=/"}, home
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("got no address: %v\n%s", cmd.Wait(), &log)
	}
	url := lines.Text()[strings.LastIndex(lines.Text(), "http"):]
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got := reserve(ctx, t, url); got != want {
			t.Errorf("request %d: got status %d, want %d", i, got, want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, &log)
	}
	if _, err := os.Stat(filepath.Join(root, home, "state")); err != nil {
		t.Errorf("want a snapshot: %v\n%s", err, &log)
	}
}

func reserve(ctx context.Context, t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/reserve",
		strings.NewReader(`{"entity":"acme","resource":"llm","costs":{"rpm":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	return answer.StatusCode
}

// unpack builds weir and writes the files of its image to a folder.
func unpack(t *testing.T, root string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/weir-limiter/weir/cmd/weir")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	image, err := testRelease.image(runtime.GOARCH, content)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(mutate.Extract(image))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, h.FileInfo().Mode().Perm())
		} else if content, err = io.ReadAll(r); err == nil {
			err = os.WriteFile(path, content, h.FileInfo().Mode().Perm())
		}
		if err := errors.Join(err, os.Lchown(path, h.Uid, h.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}
