//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package console

import (
	"os"
	"syscall"
	"unsafe"
)

// windowSize asks a terminal for its columns and rows, which may be zero; ok is false for anything
// else, /dev/null included.
func windowSize(f *os.File) (columns, rows int, ok bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var window struct{ rows, columns, width, height uint16 }
	err = raw.Control(func(fd uintptr) {
		_, _, failure := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ,
			uintptr(unsafe.Pointer(&window))) //nolint:gosec // The standard library has no other way to ask.
		ok = failure == 0
	})
	return int(window.columns), int(window.rows), ok && err == nil
}
