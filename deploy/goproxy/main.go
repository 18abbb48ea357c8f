// Command goproxy writes weir's module, as it is at the last commit, to a folder that GOPROXY can name,
// so that `go install` of a version can be tried before it is published:
//
//	go run ./goproxy FOLDER VERSION
//	GOPROXY=file://FOLDER,$(go env GOPROXY) GONOSUMDB=github.com/weir-limiter/weir \
//		go install github.com/weir-limiter/weir/cmd/weir@VERSION
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

const path = "github.com/weir-limiter/weir"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "goproxy: want FOLDER VERSION")
		os.Exit(2)
	}
	if err := write("..", os.Args[1], os.Args[2], time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "goproxy:", err)
		os.Exit(1)
	}
}

// write writes the files that https://go.dev/ref/mod#goproxy-protocol lists, for one version of the
// clone in a folder.
func write(clone, folder, version string, now time.Time) (err error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("version %q: must be like v0.1.0", version)
	}
	folder = filepath.Join(folder, path, "@v")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	m := module.Version{Path: path, Version: version}
	if err := zip.CreateFromVCS(out, m, clone, "HEAD", ""); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(clone, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]string{"Version": version, "Time": now.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, version+".mod"), mod, 0o600),
		os.WriteFile(filepath.Join(folder, version+".info"), info, 0o600),
		os.WriteFile(filepath.Join(folder, "list"), []byte(version+"\n"), 0o600),
	)
}
