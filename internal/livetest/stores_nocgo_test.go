//go:build !cgo

package livetest

// tigerBeetles returns none: TigerBeetle's client, and the emulator, need cgo.
func tigerBeetles() []*store { return nil }
