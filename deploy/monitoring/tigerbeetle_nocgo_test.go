//go:build !cgo

package monitoring

import "testing"

// tigerBeetleLoad skips the test, because the TigerBeetle store needs cgo.
func tigerBeetleLoad(t *testing.T) *load {
	t.Helper()
	t.Skip("built without cgo")
	return nil
}
