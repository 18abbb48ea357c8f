package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the ID of the user and group that the program runs as, which distroless images call nonroot.
const user = 65532

// home is a folder of that user, for a snapshot; everything else may be read-only.
const home = "/var/lib/weir"

// file is a file of a layer, or a folder if its name ends with a slash.
type file struct {
	name    string
	content []byte
	mode    int64
	owner   int
}

// baseLayer has what a program expects of a system: certificates, a user, and a folder to write to. It
// also has the texts of licences.
func baseLayer(licences fs.FS, created time.Time) (v1.Layer, error) {
	names := fmt.Sprintf("weir:x:%d:", user)
	files := []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", content: []byte(names + fmt.Sprintf("%d:weir:%s:/nologin\n", user, home)), mode: 0o644},
		{name: "etc/group", content: []byte(names + "\n"), mode: 0o644},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", content: certificates(), mode: 0o644},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/weir/", mode: 0o750, owner: user},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/weir/", mode: 0o755},
	}
	texts, err := fs.ReadDir(licences, ".")
	if err != nil {
		return nil, err
	}
	for _, of := range texts {
		text, err := fs.ReadFile(licences, of.Name())
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "usr/share/doc/weir/" + of.Name(), content: text, mode: 0o644})
	}
	return layer(files, created)
}

// certificates returns the authorities that Mozilla trusts, from a Go module, so that every machine
// makes the same image (Mozilla's list is under MPL 2.0). Those that are trusted with a further condition
// only are left out.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// layer returns a layer of files, all of the same time.
func layer(files []file, created time.Time) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)),
			ModTime: created, Format: tar.FormatPAX, Typeflag: tar.TypeReg,
		}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
