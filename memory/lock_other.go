//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// fileLock keeps two stores from using one snapshot: the file exists while a store has it. If the
// process dies the file stays, and has to be removed by hand.
type fileLock struct{ name string }

// lockFile creates a file, or returns an error if it exists.
func lockFile(name string) (*fileLock, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("another store has it open; if no other process uses it, remove %s",
			name)
	}
	if err != nil {
		return nil, err
	}
	return &fileLock{name}, f.Close()
}

func (l *fileLock) release() error { return os.Remove(l.name) }

// syncFolder does nothing, because not every system can sync a folder.
func syncFolder(string) error { return nil }
