//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package local

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes an exclusive lock on a file, which is created and never removed; unlock is nil if
// another process has it. The system releases the lock if the process dies.
func tryLock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // closing releases it
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, f.Close()
		default:
			return nil, errors.Join(err, f.Close())
		}
	}
}

// detached makes a process outlive the terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// canBecome reports whether a process can become another program.
const canBecome = true

// become makes this process another program. It returns only if that fails.
func become(program string, args []string) error {
	return syscall.Exec(program, append([]string{program}, args...), os.Environ()) //nolint:gosec // It was looked up.
}

func closeOnExec(file uintptr) { syscall.CloseOnExec(int(file)) }

// askToEnd asks a process to end in order.
func askToEnd(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// addressInUse reports whether a port is taken.
func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
