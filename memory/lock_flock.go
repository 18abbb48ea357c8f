//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package memory

import (
	"errors"
	"os"
	"syscall"
)

// fileLock keeps two stores from using one snapshot. The system releases it if the process dies.
type fileLock struct{ file *os.File }

// lockFile creates and locks a file, or returns an error if another store has it locked.
func lockFile(name string) (*fileLock, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// The store that had the lock before removes the file when it releases the lock. This
		// process may then have locked the removed file while another process locks a new one with
		// the same name, so check that the name still refers to the locked file.
		held, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if named, err := os.Stat(name); err == nil && os.SameFile(held, named) {
			return &fileLock{f}, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

func flock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errors.New("another store has it open")
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}

// release removes the file while it is still locked. A process that has opened it meanwhile notices
// that in lockFile.
func (l *fileLock) release() error {
	return errors.Join(os.Remove(l.file.Name()), l.file.Close())
}

// syncFolder makes a rename in a folder durable.
func syncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
