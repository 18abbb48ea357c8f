package local

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// Values of the Windows API that package syscall lacks.
const (
	sharingViolation = syscall.Errno(32)
	queryLimited     = 0x1000
	stillActive      = 259
	invalidParameter = syscall.Errno(87) // there is no such process
	detachedProcess  = 0x8
	addressIsInUse   = syscall.Errno(10048)
)

// tryLock opens a file that nobody else may open at the same time; unlock is nil if another process
// has it open. The system closes it if the process dies.
func tryLock(name string) (unlock func(), err error) {
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, sharingViolation):
		return nil, nil
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return func() { _ = syscall.CloseHandle(h) }, nil // closing releases it
}

// detached makes a process outlive the console.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess,
	}
}

// canBecome reports whether a process can become another program.
const canBecome = false

func become(string, []string) error { return errors.ErrUnsupported }

func closeOnExec(uintptr) {}

// askToEnd ends a process: Windows has no signal that a process without a console can handle.
func askToEnd(p *os.Process) error { return p.Kill() }

// bornAt returns the time at which a process was started, as a text to compare; empty if there is no
// such process.
func bornAt(pid int) (string, error) {
	h, err := syscall.OpenProcess(queryLimited, false, uint32(pid))
	if errors.Is(err, invalidParameter) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = syscall.CloseHandle(h) }() // it was only asked
	var code uint32
	if err := syscall.GetExitCodeProcess(h, &code); err != nil || code != stillActive {
		return "", err
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(h, &created, &ended, &kernel, &user); err != nil {
		return "", err
	}
	return strconv.FormatInt(created.Nanoseconds(), 10), nil
}

// addressInUse reports whether a port is taken.
func addressInUse(err error) bool { return errors.Is(err, addressIsInUse) }
