//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package console

import "os"

// windowSize knows only whether a file may be a terminal.
func windowSize(f *os.File) (columns, rows int, ok bool) {
	info, err := f.Stat()
	return 0, 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
