//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package server

import "context"

// hungUp reports false: only the end of the request's context tells that its client has gone.
func hungUp(context.Context) bool { return false }
