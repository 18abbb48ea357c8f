//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package local

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// tryLock fails, because a server cannot be kept on this system. Nothing else is reached then.
func tryLock(string) (unlock func(), err error) {
	return nil, fmt.Errorf("%w: weir cannot run a server in the background on %s",
		errors.ErrUnsupported, runtime.GOOS)
}

// canBecome reports whether a process can become another program.
const canBecome = false

func become(string, []string) error { return errors.ErrUnsupported }

func closeOnExec(uintptr) {}

func detached() *syscall.SysProcAttr { return nil }

func askToEnd(p *os.Process) error { return p.Kill() }

func bornAt(int) (string, error) { return "", errors.ErrUnsupported }

func addressInUse(error) bool { return false }
