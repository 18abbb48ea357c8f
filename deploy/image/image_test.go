package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var testRelease = release{
	version: "0.1.0", commit: "8f51d75", created: time.Date(2026, 11, 27, 18, 0, 0, 0, time.UTC),
	licences: fstest.MapFS{"LICENSE": {Data: []byte("Apache License")}},
}

// TestImage checks what an archive and a layout have, and that making them again gives the same bytes.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	var programs []string
	for _, architecture := range []string{"amd64", "arm64"} {
		path := filepath.Join(dir, architecture)
		if err := os.WriteFile(path, []byte("program for "+architecture), 0o600); err != nil {
			t.Fatal(err)
		}
		programs = append(programs, architecture+"="+path)
	}
	first, again := filepath.Join(dir, "first"), filepath.Join(dir, "again")
	for _, folder := range []string{first, again} {
		if err := testRelease.write(folder, programs); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := sums(t, first), sums(t, again); a != b {
		t.Errorf("got\n%s\nand then\n%s", a, b)
	}

	index, err := layout.ImageIndexFromPath(filepath.Join(first, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("got %v, %v, want two images", manifest, err)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		if p := manifest.Manifests[i].Platform; p.OS != "linux" || p.Architecture != architecture {
			t.Errorf("image %d: got %v, want linux/%s", i, p, architecture)
		}
		archive := filepath.Join(first, "weir_0.1.0_linux_"+architecture+".image.tar")
		image, err := tarball.ImageFromPath(archive, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, image, architecture)
		checkFiles(t, image, "program for "+architecture)
	}
}

func checkConfig(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.OS, c.Architecture, c.Config.User, c.Config.Entrypoint, c.Config.Cmd, c.Config.WorkingDir,
		c.Created.Unix(), c.Config.Labels["org.opencontainers.image.revision"])
	want := fmt.Sprint("linux", architecture, "65532:65532", []string{"/weir"}, []string{"help"}, home,
		testRelease.created.Unix(), testRelease.commit)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// checkFiles checks each file of an image, and that its certificates can be used.
func checkFiles(t *testing.T, image v1.Image, program string) {
	t.Helper()
	var list strings.Builder
	r := tar.NewReader(mutate.Extract(image))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(testRelease.created) {
			t.Errorf("%s: got time %s, want the commit's", h.Name, h.ModTime)
		}
		fmt.Fprintf(&list, "%s %v %d\n", h.Name, h.FileInfo().Mode(), h.Uid)
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Name {
		case "weir":
			if string(content) != program {
				t.Errorf("got program %q, want %q", content, program)
			}
		case "etc/ssl/certs/ca-certificates.crt":
			checkCertificates(t, content)
		}
	}
	const want = `weir -rwxr-xr-x 0
etc drwxr-xr-x 0
etc/passwd -rw-r--r-- 0
etc/group -rw-r--r-- 0
etc/ssl drwxr-xr-x 0
etc/ssl/certs drwxr-xr-x 0
etc/ssl/certs/ca-certificates.crt -rw-r--r-- 0
var drwxr-xr-x 0
var/lib drwxr-xr-x 0
var/lib/weir drwxr-x--- 65532
usr drwxr-xr-x 0
usr/share drwxr-xr-x 0
usr/share/doc drwxr-xr-x 0
usr/share/doc/weir drwxr-xr-x 0
usr/share/doc/weir/LICENSE -rw-r--r-- 0
`
	if list.String() != want {
		t.Errorf("got files\n%s\nwant\n%s", list.String(), want)
	}
}

// checkCertificates looks for the authorities of AWS, without which no table can be reached.
func checkCertificates(t *testing.T, content []byte) {
	t.Helper()
	found := map[string]bool{}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		found[c.Subject.CommonName] = true
	}
	for _, want := range []string{"Amazon Root CA 1", "Amazon Root CA 3", "ISRG Root X1"} {
		if !found[want] {
			t.Errorf("got %d authorities, want %q among them", len(found), want)
		}
	}
}

// TestMistakes checks that each mistake in the arguments is named.
func TestMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"want VERSION COMMIT UNIX-TIME LICENCES FOLDER": {"0.1.0", "8f51d75", "1", ".", "folder"},
		`time "today": must be seconds since 1970`:      {"0.1.0", "8f51d75", "today", ".", "folder", "amd64=program"},
		`program "amd64": must be ARCHITECTURE=PATH`:    {"0.1.0", "8f51d75", "1", ".", t.TempDir(), "amd64"},
		"no such file": {"0.1.0", "8f51d75", "1", ".", t.TempDir(), "amd64=" + t.TempDir() + "/program"},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
}

// sums lists the files in a folder with their sums.
func sums(t *testing.T, folder string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", strings.TrimPrefix(path, folder), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
