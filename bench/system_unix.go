//go:build unix

package main

import (
	"os"
	"syscall"
)

// processorTime returns the processor time of this process in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// freeze stops a process, so that its background work, such as garbage collection, falls into its
// own slices and not into those of others.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// thaw continues a frozen process.
func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
