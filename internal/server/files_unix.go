//go:build unix

package server

import (
	"os"
	"syscall"
)

// withoutWaiting makes opening a pipe return at once, even if no process writes to it.
const withoutWaiting = syscall.O_NONBLOCK

// lentByRoot reports whether a file is root's and the server is another user, which can then read it
// only because root has given the right to a group, or to everyone.
func lentByRoot(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && os.Geteuid() != 0
}
