//go:build unix

package main

import (
	"os"
	"syscall"
)

// processorTime is how long the process has been computing, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// freeze stops a process where it is, so that what it does in the background, the collection of its
// garbage above all, falls into its own slices and not into another's.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// thaw lets a frozen process go on.
func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
