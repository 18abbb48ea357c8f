//go:build unix

package server

import "syscall"

// withoutWaiting makes opening a pipe return at once, even if nobody writes to it.
const withoutWaiting = syscall.O_NONBLOCK
