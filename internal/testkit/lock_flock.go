//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package testkit

import (
	"errors"
	"os"
	"syscall"
)

// lock waits for an exclusive lock on a file, which is created and never removed. The system
// releases the lock if the process dies.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); {
		case err == nil:
			return func() { _ = f.Close() }, nil // closing releases it
		case !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(err, f.Close())
		}
	}
}
