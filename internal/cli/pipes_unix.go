//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// outlivePipes keeps a process that serves from being ended by a write to its standard output or
// error once nobody reads them anymore: it would end in the middle of a request, or before its last
// snapshot is written. It is not undone: what is said at the very end must not end it either.
// Commands that only print are to end that way.
func outlivePipes() { signal.Ignore(syscall.SIGPIPE) }
