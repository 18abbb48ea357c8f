//go:build unix

package server

import "syscall"

// withoutWaiting opens a pipe that nobody writes to at once, too.
const withoutWaiting = syscall.O_NONBLOCK
