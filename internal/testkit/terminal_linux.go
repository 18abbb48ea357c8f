package testkit

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// OpenTerminal returns both ends of a terminal of the given size. Text that is written to the
// second is read from the first.
func OpenTerminal(t *testing.T, columns, rows uint16) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	fd := outside.Fd()
	control := func(request uintptr, at unsafe.Pointer) {
		t.Helper()
		_, _, failure := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(at))
		if failure != 0 {
			t.Fatal(failure)
		}
	}
	var number, locked int32
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked)) //nolint:gosec // The standard library has no other way to ask.
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))   //nolint:gosec // The standard library has no other way to ask.
	size := [4]uint16{rows, columns}
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size)) //nolint:gosec // The standard library has no other way to ask.
	inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = inside.Close() })
	return outside, inside
}
