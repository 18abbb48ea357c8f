//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package testkit

import "errors"

// lock cannot wait for other processes here, so that nothing is fetched.
func lock(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
