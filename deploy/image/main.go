// Command image makes container images of weir from programs for Linux that are built already, without
// a container engine:
//
//	go run ./image VERSION COMMIT UNIX-TIME LICENCES FOLDER ARCHITECTURE=PROGRAM...
//
// LICENCES is a folder with the texts of licences. It writes an archive for `docker load` or `podman load` for each architecture, and a layout of the Open
// Container Initiative with all of them, for registries.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// repository is where the images are published.
const repository = "ghcr.io/weir-limiter/weir"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 6 {
		return errors.New("want VERSION COMMIT UNIX-TIME LICENCES FOLDER ARCHITECTURE=PROGRAM")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("time %q: must be seconds since 1970", args[2])
	}
	r := &release{
		version: args[0], commit: args[1], created: time.Unix(seconds, 0).UTC(), licences: os.DirFS(args[3]),
	}
	return r.write(args[4], args[5:])
}

// release has what the images of one version have in common.
type release struct {
	version, commit string
	created         time.Time
	licences        fs.FS // their texts
}

// write writes the images of the programs, each of which is ARCHITECTURE=PATH, to a folder, which it
// makes. The same arguments give the same bytes.
func (r *release) write(folder string, programs []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	for _, p := range programs {
		architecture, path, found := strings.Cut(p, "=")
		if !found {
			return fmt.Errorf("program %q: must be ARCHITECTURE=PATH", p)
		}
		program, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		i, err := r.image(architecture, program)
		if err != nil {
			return err
		}
		tag, err := name.NewTag(repository + ":" + r.version)
		if err != nil {
			return err
		}
		archive := fmt.Sprintf("weir_%s_linux_%s.image.tar", r.version, architecture)
		if err := tarball.WriteToFile(filepath.Join(folder, archive), tag, i); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	_, err := layout.Write(filepath.Join(folder, "oci"), index)
	return err
}

// image returns an image whose only program is weir.
func (r *release) image(architecture string, program []byte) (v1.Image, error) {
	base, err := baseLayer(r.licences, r.created)
	if err != nil {
		return nil, err
	}
	top, err := layer([]file{{name: "weir", content: program, mode: 0o755}}, r.created)
	if err != nil {
		return nil, err
	}
	i := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "deploy/image"}
	i, err = mutate.Append(i, mutate.Addendum{Layer: base, History: history}, mutate.Addendum{Layer: top, History: history})
	if err != nil {
		return nil, err
	}
	config, err := i.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Created = v1.Time{Time: r.created}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/weir"}, Cmd: []string{"help"},
		WorkingDir: home, Env: []string{"PATH=/"}, Volumes: map[string]struct{}{home: {}},
		ExposedPorts: map[string]struct{}{"7117/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "weir",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.created":  r.created.Format(time.RFC3339),
			"org.opencontainers.image.source":   "https://github.com/weir-limiter/weir",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(i, config)
}
