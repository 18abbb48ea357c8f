//go:build unix

package server

import "syscall"

// withoutWaiting makes opening a pipe return at once, even if no process writes to it.
const withoutWaiting = syscall.O_NONBLOCK
