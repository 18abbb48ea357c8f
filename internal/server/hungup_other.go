//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package server

import "context"

// hungUp returns false: only the end of a request's context shows that its client has gone.
func hungUp(context.Context) bool { return false }
